//! Compiles the BPF programs.

fn main() {
    #[cfg(feature = "bpf")]
    bpf();
}

#[cfg(feature = "bpf")]
fn bpf() {
    use std::process::Command;
    println!("cargo::rerun-if-changed=src/bpf");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    // libbpf's own headers, and <asm/types.h>, which lies in the folder of the build machine's architecture.
    let libbpf = format!("-I{}", variable("DEP_BPF_INCLUDE"));
    let machine = variable("HOST").split('-').next().map(|arch| format!("-I/usr/include/{arch}-linux-gnu"));
    for program in ["monitor", "failed"] {
        let (source, out) = (format!("src/bpf/{program}.bpf.c"), format!("{}/{program}.bpf.o", variable("OUT_DIR")));
        let compiled = Command::new("clang")
            .args(["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Werror", "-c", &source, "-o", &out, &libbpf])
            .args(&machine)
            .status();
        let compiled = compiled.expect("compiling the BPF programs needs clang (make setup installs it)");
        assert!(compiled.success(), "clang cannot compile {source}");
    }
}
