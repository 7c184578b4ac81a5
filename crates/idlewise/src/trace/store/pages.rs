//! The pages of a column, each within the limits at the moment when it is read.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use super::limits;
use crate::trace::spool::Part;

/// The pages of a column in a row group.
pub struct CheckedPages {
    file: Arc<Part>,
    pages: limits::Pages,
    column: ColumnDescPtr,
    compression: Compression,
    /// The page whose header was looked at already.
    next: Option<limits::Page>,
}

impl CheckedPages {
    pub fn new(file: Arc<Part>, chunk: &ColumnChunkMetaData) -> std::result::Result<Self, String> {
        let (column, compression) = (chunk.column_descr_ptr(), chunk.compression());
        Ok(Self { file, pages: limits::Pages::new(chunk)?, column, compression, next: None })
    }

    /// Takes the next page; those without values are passed over, as nothing would be read behind them.
    fn take(&mut self) -> Result<Option<limits::Page>> {
        if let Some(page) = self.next.take() {
            return Ok(Some(page));
        }
        while let Some(page) = self.pages.next(&self.file).map_err(ParquetError::General)? {
            if page.is_dictionary || page.values > 0 {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    /// Unpacks the page, by a reader of this page alone.
    fn unpack(&self, page: &limits::Page) -> Result<Page> {
        let bytes = Bytes::from(self.pages.read(&self.file, page).map_err(ParquetError::General)?);
        let chunk = ColumnChunkMetaData::builder(self.column.clone())
            .set_compression(self.compression)
            .set_data_page_offset(0)
            .set_total_compressed_size(bytes.len() as i64)
            .build()?;
        let mut alone = SerializedPageReader::new(Arc::new(bytes), &chunk, 0, None)?;
        alone.get_next_page()?.ok_or_else(|| ParquetError::General("a damaged page".into()))
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.take()?;
        page.map(|page| self.unpack(&page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.next = self.take()?;
        // Columns that are read do not repeat: a value is a row.
        let known = |page: &limits::Page| {
            let values = usize::try_from(page.values).ok().filter(|_| !page.is_dictionary);
            PageMetadata { num_rows: values, num_levels: values, is_dict: page.is_dictionary }
        };
        Ok(self.next.as_ref().map(known))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.take().map(drop)
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
