//! Examples at the end of each `--help` and manual page.

use clap::Command;

/// A command and what it does.
type Example = (&'static str, &'static str);

/// Words between `idlewise` and the rest, and the examples.
const EXAMPLES: &[(&[&str], &[Example])] = &[
    (
        &["scrub"],
        &[
            ("idlewise scrub /dev/sda", "One disk, with the default goal for its kind"),
            (
                "idlewise scrub /dev/sda --mean-slowdown 1ms --max-slowdown 20ms",
                "Cost foreground requests at most 1 ms on average, and 20 ms at most",
            ),
            (
                "idlewise scrub --all --finish-within 14d --for 6h",
                "All disks for six hours, so that a pass ends in two weeks",
            ),
        ],
    ),
    (
        &["status"],
        &[
            ("idlewise status", "All disks that were scrubbed"),
            ("idlewise status /dev/sda", "One disk, with its unreadable blocks and what to do about them"),
            ("idlewise status --older-than 35d --json", "For monitoring: the exit code says whether all is well"),
        ],
    ),
    (
        &["daemon"],
        &[
            ("idlewise daemon", "All disks of this machine, until it is ended"),
            (
                "idlewise daemon --config idlewise.toml --state-dir states",
                "The same with another configuration, to try it",
            ),
        ],
    ),
    (
        &["check-config"],
        &[
            (
                "idlewise check-config",
                "The goal of each disk, and which section of /etc/idlewise/idlewise.toml it is from",
            ),
            ("idlewise check-config --config idlewise.toml", "The same before that file is put there"),
        ],
    ),
    (
        &["pause"],
        &[
            ("idlewise pause --for 6h --why backup", "All disks, for as long as a backup takes"),
            ("idlewise pause /dev/sda --until \"2026-12-01 08:00\"", "One disk, until somebody is there"),
        ],
    ),
    (&["resume"], &[("idlewise resume", "All disks"), ("idlewise resume /dev/sda", "One disk")]),
    (&["start"], &[("idlewise start /dev/sda", "A pass over a disk that was moved, or dropped")]),
    (
        &["acknowledge"],
        &[("idlewise acknowledge /dev/sda", "Its replacement is ordered: say no more of the blocks that are known")],
    ),
    (
        &["history"],
        &[
            ("idlewise history /dev/sda", "When each pass began and ended, and what it cost"),
            ("idlewise history wwn-0x5000c500a1b2c3d4 --json", "The same for a program, of a disk that is gone"),
        ],
    ),
    (
        &["metrics"],
        &[
            ("idlewise metrics", "What Prometheus would be told"),
            (
                "idlewise metrics --output /var/lib/prometheus/node-exporter/idlewise.prom",
                "The same for the textfile collector of node_exporter, every minute by a timer",
            ),
        ],
    ),
    (
        &["notify"],
        &[
            ("idlewise notify --test", "Whether messages arrive, by what the configuration says"),
            ("idlewise notify --config idlewise.toml --test", "The same before that file is put in place"),
        ],
    ),
    (
        &["owner-scrub"],
        &[
            ("idlewise owner-scrub /dev/md0 --allow-writes", "md's check, while nobody uses the array"),
            (
                "idlewise owner-scrub /dev/sdb --mean-slowdown 1ms --for 6h --allow-writes",
                "btrfs's scrub of one of its devices, for six hours of this night",
            ),
        ],
    ),
    (
        &["run"],
        &[
            (
                "idlewise run --mean-slowdown 1ms -- rsync -a /srv /backup",
                "A backup that slows other requests by at most 1 ms on average",
            ),
            ("idlewise run --unit backup.service", "A service that runs already"),
            ("idlewise run --device /srv --json tar.json -- tar cf - /srv", "One file system, and what it cost"),
        ],
    ),
    (
        &["repair"],
        &[
            ("idlewise repair /dev/sdb1 --md", "Show which blocks md would be asked to rewrite"),
            ("idlewise repair /dev/sdb1 --md --allow-writes", "Let md rewrite them"),
        ],
    ),
    (
        &["probe"],
        &[(
            "idlewise probe /dev/sda --out sda.toml --report sda.html",
            "Keep the disk model, and charts of the measurements",
        )],
    ),
    (&["capture"], &[("idlewise capture /dev/sda --for 1h --out sda.parquet", "One hour of what the disk is asked")]),
    (&["trace", "info"], &[("idlewise trace info hm_0.csv.gz", "Which format it has, and what it holds")]),
    (&["trace", "stats"], &[("idlewise trace stats hm_0.csv.gz --report hm_0.html", "With charts")]),
    (&["trace", "head"], &[("idlewise trace head hm_0.csv.gz -n 20", "The first 20 requests")]),
    (
        &["trace", "convert"],
        &[
            ("idlewise trace convert hm_0.csv.gz --out hm_0.parquet", "For other tools"),
            (
                "idlewise trace convert all.csv.gz --by-volume --out disk.parquet",
                "A file for each volume: disk.hm_0.parquet and so on",
            ),
        ],
    ),
    (
        &["trace", "cut"],
        &[("idlewise trace cut hm_0.csv.gz --from 1h --until 2h --out hour.csv.gz", "The second hour")],
    ),
    (&["trace", "merge"], &[("idlewise trace merge sda.parquet sdb.parquet --out both.parquet", "Two disks by time")]),
    (
        &["trace", "synth"],
        &[
            (
                "idlewise trace synth --fleet 1000 --requests 20000000 --for 31d --out fleet.parquet",
                "Like the volumes of a cloud",
            ),
            ("idlewise trace synth --like dsn2008-t2 --out t2.csv.gz", "Like a trace of the papers"),
            (
                "idlewise trace synth --idle-mean 500ms --idle-cov 6 --requests 20000 --out long.parquet",
                "With idle intervals of a long tail",
            ),
        ],
    ),
    (&["idle"], &[("idlewise idle hm_0.csv.gz --report idle.html", "The statistics, and every chart on one page")]),
    (
        &["fleet"],
        &[
            (
                "idlewise fleet 'traces/*.csv.gz' --out fleet --mean-slowdown 1ms --max-slowdown 50ms",
                "All volumes of these files, on the cores of this machine",
            ),
            (
                "idlewise fleet 'traces/*.parquet' --out /shared/fleet --finish-within 14d --engine tcp://10.0.0.1:8786",
                "The same by a Dask cluster: the gentlest plan by which a pass ends in two weeks",
            ),
        ],
    ),
    (
        &["fleet", "plans"],
        &[(
            "idlewise fleet plans fleet --host hm_ --path '/dev/disk/by-id/virtio-{volume}' --mean-slowdown 1ms --max-slowdown 50ms",
            "Sections of idlewise.toml for the volumes of the machine hm",
        )],
    ),
    (
        &["tune"],
        &[
            ("idlewise tune hm_0.csv.gz --mean-slowdown 1ms --max-slowdown 50ms", "The fastest scrub for this goal"),
            (
                "idlewise tune sda.parquet --disk sda.toml --mean-slowdown 1ms --max-slowdown 50ms --any-moment --out plan.toml",
                "For a measured disk, as a plan that `idlewise scrub --plan` takes",
            ),
        ],
    ),
    (
        &["replay"],
        &[
            ("idlewise replay sda.parquet /dev/sdb --for 10min", "The first ten minutes, writes played as reads"),
            (
                "idlewise replay plan.toml /dev/sdb --out times.parquet",
                "The essence of a trace, as `idlewise sample` chose it",
            ),
        ],
    ),
    (
        &["simulate"],
        &[
            ("idlewise simulate hm_0.csv.gz --idle-wait 100ms --request-size 512KiB", "One policy"),
            (
                "idlewise simulate hm_0.csv.gz --grid 64KiB,1MiB 10ms,100ms,1s --csv",
                "Waiting with each pair, for a spreadsheet",
            ),
        ],
    ),
    (
        &["compare"],
        &[(
            "idlewise compare hm_0.csv.gz --train 0.5 --report compare.html",
            "Policies fitted to the first half, judged on the second",
        )],
    ),
    (
        &["explore"],
        &[(
            "idlewise explore hm_0.csv.gz --relative-delay 0.07 --report map.html",
            "Heat maps, and the best pair for 7 % delay",
        )],
    ),
    (&["sample"], &[("idlewise sample hm_0.csv.gz --interval 10s --out plan.toml", "A plan for `idlewise replay`")]),
    (
        &["reliability"],
        &[
            (
                "idlewise reliability hm_0.csv.gz --idle-wait 100ms --request-size 512KiB",
                "What a scrub beside this load brings",
            ),
            ("idlewise reliability --scan-time 14d", "What a pass in two weeks brings"),
        ],
    ),
    (
        &["array"],
        &[
            ("idlewise array raid6:10 --pass 14d,60d", "Ten disks, scrubbed in two weeks and in two months"),
            ("idlewise array mirror:2 hm_0.csv.gz", "A mirror, scrubbed within 0.5, 1 and 2 ms beside this load"),
        ],
    ),
];

/// Gives each subcommand its examples.
pub fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (words, examples)| add(command, words, examples))
}

fn add(command: Command, words: &[&'static str], examples: &[Example]) -> Command {
    if let Some((first, rest)) = words.split_first() {
        return command.mut_subcommand(first, |below| add(below, rest, examples));
    }
    let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let lines: String = examples.iter().map(|(line, about)| format!("\n  {line}\n          {about}")).collect();
    command.after_help(format!("{before}{TITLE}{lines}"))
}

/// What stands above them.
pub const TITLE: &str = "Examples:";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The names of all subcommands that do something.
    fn all(command: &Command, before: &[String]) -> Vec<Vec<String>> {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        let below = below.flat_map(|below| all(below, &[before, &[below.get_name().to_string()]].concat()));
        let below: Vec<_> = below.collect();
        if below.is_empty() { vec![before.to_vec()] } else { below }
    }

    #[test]
    fn every_subcommand_has_examples_and_they_are_understood() {
        let command = with_examples(crate::Arguments::command());
        for words in all(&command, &[]) {
            let found = EXAMPLES.iter().find(|(of, _)| *of == words);
            assert!(found.is_some() || words == ["trace", "formats"], "{words:?} has no example");
            for (line, _) in found.into_iter().flat_map(|(_, examples)| *examples) {
                assert!(format!("{line} ").starts_with(&format!("idlewise {} ", words.join(" "))), "{line}");
                if let Err(error) = command.clone().try_get_matches_from(line.split(' ')) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
