//! A label of a ZFS pool's member, made from the on-disk specification, not by ZFS.

/// 256 KiB that name a pool.
pub fn label(name: &str, guid: u64) -> Vec<u8> {
    let text = |text: &str| {
        let mut out = (text.len() as u32).to_be_bytes().to_vec();
        out.extend(text.bytes());
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let pair = |key: &str, kind: u32, value: Vec<u8>| {
        let body = [text(key), kind.to_be_bytes().into(), 1u32.to_be_bytes().into(), value].concat();
        [(body.len() as u32 + 8).to_be_bytes().to_vec(), 64u32.to_be_bytes().into(), body].concat()
    };
    // Numbers are of type 8, texts of type 9.
    let pairs = [
        vec![1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        pair("version", 8, 5_000u64.to_be_bytes().into()),
        pair("name", 9, text(name)),
        pair("pool_guid", 8, guid.to_be_bytes().into()),
        vec![0; 8],
    ]
    .concat();
    let mut label = vec![0; 256 << 10];
    label[16 << 10..][..pairs.len()].copy_from_slice(&pairs);
    // The fifth of uberblocks of 4 KiB.
    label[(128 << 10) + 4 * (4 << 10)..][..8].copy_from_slice(&0x00ba_b10c_u64.to_le_bytes());
    label
}
