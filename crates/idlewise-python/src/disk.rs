//! Models of disks: how long their requests take.

use std::path::PathBuf;
use std::sync::Arc;

use idlewise::disk::{DiskModel, PRESETS, Preset};
use idlewise::report::printable::one_line;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::value_error;
use crate::files::{text_of, write_text};
use crate::units::Size;

#[doc = doc!("Disk")]
#[pyclass(frozen, from_py_object, module = "idlewise")]
#[derive(Clone)]
pub struct Disk {
    pub model: Arc<DiskModel>,
}

impl Disk {
    fn new(model: DiskModel) -> Self {
        Self { model: Arc::new(model) }
    }

    /// What `disk=` is given as: a disk, the name of a preset, or a file; without it the model that the command takes.
    pub fn given(given: Option<&Bound<PyAny>>) -> PyResult<Arc<DiskModel>> {
        let Some(given) = given else { return Ok(Arc::new(DiskModel::ultrastar_15k450())) };
        if let Ok(disk) = given.extract::<Self>() {
            return Ok(disk.model);
        }
        if let Some(preset) = given.cast::<PyString>().ok().and_then(|name| Preset::named(&name.to_string())) {
            return Ok(Arc::new(preset.model()));
        }
        let path: PathBuf = given.extract()?;
        match path.exists() || path.components().count() > 1 || path.extension().is_some() {
            true => Ok(Self::load(path)?.model),
            // Neither a file nor a preset.
            false => Ok(Self::preset(&path.to_string_lossy())?.model),
        }
    }
}

#[pymethods]
impl Disk {
    #[doc = doc!("Disk.load")]
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let text = text_of(&path)?;
        let model = DiskModel::from_toml(&text);
        let model = model.map_err(|error| value_error(&format!("{}: {error}", path.display())))?;
        Ok(Self::new(DiskModel { name: one_line(&model.name).into_owned(), ..model }))
    }

    #[doc = doc!("Disk.parse")]
    #[staticmethod]
    fn parse(toml: &str) -> PyResult<Self> {
        DiskModel::from_toml(toml).map(Self::new).map_err(|error| value_error(&error.to_string()))
    }

    #[doc = doc!("Disk.preset")]
    #[staticmethod]
    fn preset(name: &str) -> PyResult<Self> {
        let known = || PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
        let preset = Preset::named(name);
        let preset = preset.ok_or_else(|| value_error(&format!("no disk '{name}'; there is {}", known())))?;
        Ok(Self::new(preset.model()))
    }

    #[doc = doc!("Disk.presets")]
    #[staticmethod]
    fn presets() -> Vec<(&'static str, &'static str)> {
        PRESETS.iter().map(|preset| (preset.name, preset.about)).collect()
    }

    #[doc = doc!("Disk.name")]
    #[getter]
    fn name(&self) -> &str {
        &self.model.name
    }

    #[doc = doc!("Disk.verify_time_ns")]
    fn verify_time_ns(&self, size: Size) -> u64 {
        self.model.verify_time(size.0).0
    }

    #[doc = doc!("Disk.to_toml")]
    fn to_toml(&self) -> String {
        self.model.to_toml()
    }

    #[doc = doc!("Disk.save")]
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write_text(&path, &self.to_toml())
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.Disk: {}>", one_line(&self.model.name))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.to_toml() == other.to_toml()
    }

    fn __reduce__(slf: &Bound<Self>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((slf.getattr("parse")?.unbind(), (slf.get().to_toml(),)))
    }
}
