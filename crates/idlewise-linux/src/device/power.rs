//! Whether a disk has stopped spinning. It is asked in a way that does not wake it up.

use std::fs;

use super::Device;
use super::sg::{Answer, Sg, ata_command};
use super::verify::sense::{Registers, Sense};

/// ACS-3, section 7.3.
const CHECK_POWER_MODE: u8 = 0xe5;
/// SPC-4, section 6.39.
const REQUEST_SENSE: u8 = 0x03;
/// "Low power condition on", with many qualifiers.
const LOW_POWER: u8 = 0x5e;
/// "Initializing command required": stopped.
const STOPPED: (u8, u8) = (0x04, 0x02);

impl Device {
    /// Whether it is in standby or stopped; `false` where it does not say so.
    pub fn is_asleep(&self) -> bool {
        // The kernel has put it to sleep: any command would wake it up.
        let status = self.disk_folder().join("device/power/runtime_status");
        if fs::read_to_string(status).is_ok_and(|status| status.trim() == "suspended") {
            return true;
        }
        let Ok(disk) = Sg::open(self) else { return false };
        if self.vendor().as_deref() == Some("ATA") { ata(&disk) } else { scsi(&disk) }
    }
}

fn ata(disk: &Sg) -> bool {
    /// The registers are wanted also where all went well.
    const CHECK_CONDITION: u8 = 0x20;
    const EXTENDED: u8 = 0x01;
    let mut command = ata_command(CHECK_POWER_MODE, 0, 0, 0, false);
    command[1] &= !EXTENDED;
    command[2] |= CHECK_CONDITION;
    let Ok(Answer::Sense(data)) = disk.command(&command, &mut []) else { return false };
    let registers = Sense::decode(&data, true).and_then(|sense| sense.ata);
    registers.is_some_and(|registers| is_standby(&registers))
}

/// Standby; with the disk's own timers as well. An error of the command tells nothing.
fn is_standby(registers: &Registers) -> bool {
    registers.status & 1 == 0 && matches!(registers.count, 0x00 | 0x01)
}

fn scsi(disk: &Sg) -> bool {
    let mut data = [0; 18];
    let command = [REQUEST_SENSE, 0, 0, 0, data.len() as u8, 0];
    let answered = disk.command(&command, &mut data).is_ok_and(|answer| answer == Answer::Good);
    answered && Sense::decode(&data, false).is_some_and(|sense| is_low_power(&sense))
}

fn is_low_power(sense: &Sense) -> bool {
    sense.code.0 == LOW_POWER || sense.code == STOPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_says_of_its_power() {
        let of = |status, count| is_standby(&Registers { status, count, ..Registers::default() });
        // Standby, standby by a timer, idle, active, and an error.
        assert_eq!(
            [of(0x50, 0), of(0x50, 1), of(0x50, 0x80), of(0x50, 0xff), of(0x51, 0)],
            [true, true, false, false, false]
        );
        let of = |key, code| is_low_power(&Sense { key, code, ..Sense::default() });
        assert_eq!([of(0, (0x5e, 0)), of(2, (4, 2)), of(0, (0, 0)), of(2, (4, 1))], [true, true, false, false]);
    }
}
