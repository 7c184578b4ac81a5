//! Whether what a checkpoint says is still true of the device that is there now.

use idlewise::Bytes;

use super::Pass;
use crate::device::{Device, Glance, Which};

/// Why what a pass says is not true of the device that is there, or not of all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// Why.
    pub why: String,
    /// Whether that is certain; else nobody knows.
    pub surely: bool,
}

impl Pass {
    /// Whether it is outdated, if devices are there that are called as it says. Of several paths to one disk it is enough that it is true
    /// of one.
    pub fn outdated(&self, now: &[Glance]) -> Option<Outdated> {
        let all: Option<Vec<_>> = now.iter().map(|one| self.outdated_by(one)).collect();
        all?.into_iter().min_by_key(|one| one.surely)
    }

    fn outdated_by(&self, now: &Glance) -> Option<Outdated> {
        let sure = |why: &str| Some(Outdated { why: why.into(), surely: true });
        let Some(before) = &self.marks else { return None };
        let by_members = self.identity != Device::itself(&self.identity);
        if let Some(why) = now.marks.other_than(before, now.named) {
            return Some(Outdated { why, surely: now.marks.is_surely_other_than(before, now.named) });
        }
        if now.marks.lies_elsewhere_than(before) {
            return sure("it lay elsewhere then");
        }
        let since_then = now.marks.boot_id == before.boot_id;
        let is_there = |then: &Which| {
            let is_same =
                |part: &&Which| part.identity == then.identity && (!since_then || part.diskseq == then.diskseq);
            now.parts.iter().any(|part| is_same(&part))
        };
        // One that lacks a member has no other in its place.
        if now.parts.len() >= before.members.len() && !before.members.iter().all(is_there) {
            return sure("a member of the array was another disk then");
        }
        let block = u64::from(self.block_bytes.max(1));
        let size = now.size.0 / block * block;
        if !by_members && size > self.device_bytes {
            return sure(&format!("it has grown from {} to {} since then", Bytes(self.device_bytes), Bytes(size)));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Marks, Named};

    fn pass(identity: &str, marks: &str) -> Pass {
        let text = format!(
            r#"{{"version":10,"identity":"{identity}","device":"/dev/sda","device_bytes":1048576,"block_bytes":4096,"marks":{marks},
            "order":{{"name":"sequential"}},"place":{{"visited_bytes":1048576,"course_bytes":1048576}},"state":"complete","errors":[],
            "started_unix_s":1,"saved_unix_s":2,"completed_unix_s":2,"run":null}}"#
        );
        Pass::parse(text.as_bytes()).unwrap()
    }

    fn glance(diskseq: u64, named: Named, size: u64) -> Glance {
        let marks = Marks { boot_id: "b".into(), diskseq: Some(diskseq), ..Marks::default() };
        Glance { marks, named, size: Bytes(size), parts: Vec::new() }
    }

    const MARKS: &str = r#"{"start_bytes":0,"partition_uuid":null,"boot_id":"b","diskseq":7}"#;

    #[test]
    fn what_was_read_of_another_device_is_outdated() {
        let pass = pass("name-vdb", MARKS);
        let surely = |now: &[Glance]| pass.outdated(now).map(|outdated| outdated.surely);
        // Its last bytes are no whole block.
        let same = glance(7, Named::ForNow, 1_048_576 + 512);
        assert_eq!((surely(&[]), surely(std::slice::from_ref(&same))), (None, None));
        let other = glance(8, Named::ForNow, 1_048_576);
        assert_eq!(surely(std::slice::from_ref(&other)), Some(true));
        // Two paths to one disk.
        assert_eq!(surely(&[other, same.clone()]), None);
        assert_eq!(surely(&[glance(8, Named::Alone, 1_048_576)]), None);
        assert_eq!(surely(&[glance(7, Named::Alone, 2_097_152)]), Some(true));
        let moved = Marks { start_bytes: 4096, ..same.marks.clone() };
        assert_eq!(surely(&[Glance { marks: moved, named: Named::Alone, ..same.clone() }]), Some(true));
        let restarted = Marks { boot_id: "c".into(), ..same.marks.clone() };
        assert_eq!(surely(&[Glance { marks: restarted, ..same }]), Some(false));
    }

    #[test]
    fn an_array_is_outdated_when_a_member_was_replaced() {
        let member = |name: &str, diskseq| Which { identity: name.into(), diskseq: Some(diskseq), for_now: false };
        let pass = pass(
            "md-1-by-members",
            r#"{"start_bytes":0,"partition_uuid":null,"boot_id":"b","diskseq":7,"members":[
            {"identity":"wwn-1","diskseq":3,"for_now":false},{"identity":"wwn-2","diskseq":4,"for_now":false}]}"#,
        );
        let with = |parts: &[Which]| {
            pass.outdated(&[Glance { parts: parts.to_vec(), ..glance(7, Named::Alone, 1 << 30) }])
                .map(|outdated| outdated.why)
        };
        assert_eq!(with(&[member("wwn-2", 4), member("wwn-1", 3)]), None);
        // It lacks one for now.
        assert_eq!(with(&[member("wwn-1", 3)]), None);
        let why = Some("a member of the array was another disk then".to_string());
        assert_eq!(with(&[member("wwn-1", 3), member("wwn-3", 5)]), why);
        assert_eq!(with(&[member("wwn-1", 3), member("wwn-2", 5)]), why);
    }
}
