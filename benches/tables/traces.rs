//! The traces of the tables: those of whole disks first, then those of phones and parts of a second.

/// Name for people, and file.
pub const TRACES: [(&str, &str); 22] = [
    ("hplajw, two disks", "hplajw.1week.srt"),
    ("MySQL server", "blkreplay_linux-mysql.load.gz"),
    ("MS SQL server", "blkreplay_windows-mssql.load.gz"),
    ("shared server", "blkreplay_windows-shared-server.load.gz"),
    ("cloudPhysics", "cloudPhysicsIO.vscsi"),
    ("MSR wdev_1", "msr/wdev_1.csv"),
    ("MSR wdev_3", "msr/wdev_3.csv"),
    ("MSR web_3 (damaged)", "msr/web_3.damaged.txt.xz"),
    ("MSR hm_0 (excerpt)", "msr/hm_0.excerpt.csv"),
    ("Hadoop node", "blktrace-hadoop/e9.cpu0-3.tar.xz"),
    ("phone, music", "nexus5/log131_music.txt.xz"),
    ("phone, Twitter", "nexus5/log186_twitter.txt.xz"),
    ("phone, download", "nexus5/log156_download.txt.xz"),
    ("phone, Facebook", "nexus5/log191_facebook.txt.xz"),
    ("phone, YouTube", "nexus5/log152_YouTube.txt.xz"),
    ("phone, e-mail", "nexus5/log111_email.txt.xz"),
    ("phone, calls", "nexus5/log146_callIn.txt.xz"),
    ("phone, calls out", "nexus5/log147_callout.txt.xz"),
    ("phone, booting (clock jumps)", "nexus5/log176_Booting.txt.xz"),
    ("phone, game (UFS)", "pixel6a/genshin_impact_exec.csv.gz"),
    ("phone, Telegram (UFS)", "pixel6a/telegram_exec.csv.gz"),
    ("NVMe (0.7 s)", "blktrace-hadoop/nvme.blkparse.txt.xz"),
];
