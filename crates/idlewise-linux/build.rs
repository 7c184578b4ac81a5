//! Compiles the BPF program of the monitor and generates its Rust skeleton.

fn main() {
    #[cfg(feature = "bpf")]
    bpf();
}

#[cfg(feature = "bpf")]
fn bpf() {
    const SOURCE: &str = "src/bpf/monitor.bpf.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // <asm/types.h> lies in the folder of the build machine's architecture.
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    let include = format!("-I/usr/include/{arch}-linux-gnu");
    libbpf_cargo::SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args([include.as_str(), "-Wall", "-Werror"])
        .build_and_generate(out.join("monitor.skel.rs"))
        .expect("compiling the BPF program needs clang, libelf-dev and zlib1g-dev (make setup installs them)");
}
