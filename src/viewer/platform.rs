//! What the machine offers: a display, something to draw with, memory.

use std::path::Path;

/// Why there can be no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No window can be opened.
    #[error(
        "there is no display to open a window on ({0}); `glug render SCENE --out clip.mp4` draws without one, \
         `glug run SCENE` simulates without pictures"
    )]
    Display(String),
    /// Nothing can draw.
    #[error(
        "there is no Vulkan device to draw with; install a driver (on Debian `apt install mesa-vulkan-drivers` draws \
         on the processor), or simulate without pictures: `glug run SCENE`"
    )]
    Adapter,
}

/// Whether a window can be opened.
pub fn find_display() -> Result<(), Missing> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(name) = set("WAYLAND_DISPLAY") {
        let socket = Path::new(&set("XDG_RUNTIME_DIR").unwrap_or_default()).join(&name);
        if socket.exists() {
            return Ok(());
        }
    }
    let Some(display) = set("DISPLAY") else {
        return Err(Missing::Display("neither DISPLAY nor WAYLAND_DISPLAY leads to one".into()));
    };
    // `:1.0` is the screen 0 of the server behind the socket X1; other names go over the network.
    match display.strip_prefix(':').map(|rest| rest.split('.').next().unwrap_or(rest)) {
        Some(number) if !Path::new("/tmp/.X11-unix").join(format!("X{number}")).exists() => {
            Err(Missing::Display(format!("DISPLAY={display}, but no server is listening there")))
        }
        _ => Ok(()),
    }
}

/// Whether anything can draw.
pub fn find_adapter() -> Result<(), Missing> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let options = wgpu::RequestAdapterOptions::default();
    match bevy::tasks::block_on(instance.request_adapter(&options)) {
        Ok(_) => Ok(()),
        Err(_) => Err(Missing::Adapter),
    }
}

/// Asks the allocator to give large pieces of memory back as soon as nobody needs them. Scenes come and go in a window;
/// otherwise it would hold on to what the largest of them took, several times over.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE: libc::c_int = 512 << 10;
        const SPARE: libc::c_int = 8 << 20;
        // SAFETY: these calls only set numbers of the allocator, which takes its own lock for it. A refusal does no harm.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE);
        }
    }
}
