//! Whether two objects make the kernel run the same programs.

use std::collections::BTreeMap;

use anyhow::Context;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionFlags};

/// A relocation as (offset, section and offset of what it refers to, addend). Names of symbols are
/// left out: the compiler puts hashes into them.
type Relocation = (u64, String, u64, i64);

/// Bytes and relocations of a section.
type Section = (Vec<u8>, Vec<Relocation>);

/// Sections that the kernel gets something of: instructions, map definitions, constants, licence.
/// What is left out describes them: BTF, DWARF, symbols.
fn sections(bytes: &[u8]) -> anyhow::Result<BTreeMap<String, Section>> {
    let file = object::File::parse(bytes).context("no ELF object")?;
    let mut sections = BTreeMap::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        if sh_flags & u64::from(object::elf::SHF_ALLOC) == 0 {
            continue;
        }
        let mut relocations = Vec::new();
        for (offset, relocation) in section.relocations() {
            let (target, at) = target(&file, relocation.target())?;
            relocations.push((offset, target, at, relocation.addend()));
        }
        relocations.sort();
        sections.insert(section.name()?.to_owned(), (section.data()?.to_vec(), relocations));
    }
    Ok(sections)
}

fn target(file: &object::File<'_>, target: RelocationTarget) -> anyhow::Result<(String, u64)> {
    let RelocationTarget::Symbol(index) = target else { return Ok((String::new(), 0)) };
    let symbol = file.symbol_by_index(index)?;
    let section = match symbol.section_index() {
        Some(index) => file.section_by_index(index)?.name()?.to_owned(),
        None => symbol.name()?.to_owned(),
    };
    Ok((section, symbol.address()))
}

/// Names of the sections that differ.
pub(crate) fn differences(committed: &[u8], built: &[u8]) -> anyhow::Result<Vec<String>> {
    let committed = sections(committed).context("committed object")?;
    let built = sections(built).context("rebuilt object")?;
    let names: std::collections::BTreeSet<_> = committed.keys().chain(built.keys()).collect();
    let differ = names.into_iter().filter(|name| committed.get(*name) != built.get(*name));
    Ok(differ.map(|name| format!("section {name}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMITTED: &[u8] = include_bytes!("../../../agent/bpf/goodput-agent.bpf.o");

    #[test]
    fn an_object_has_programs_and_maps_and_equals_itself() {
        let names: Vec<_> = sections(COMMITTED).unwrap().into_keys().collect();
        for name in ["classifier", "tracepoint", "maps", ".rodata", "license"] {
            assert!(names.iter().any(|it| it == name), "{name} is not among {names:?}");
        }
        assert!(differences(COMMITTED, COMMITTED).unwrap().is_empty());
    }

    #[test]
    fn one_changed_instruction_and_one_changed_map_are_named() {
        for name in ["tracepoint", "maps"] {
            let file = object::File::parse(COMMITTED).unwrap();
            let (start, _) = file.section_by_name(name).unwrap().file_range().unwrap();
            let mut changed = COMMITTED.to_vec();
            changed[usize::try_from(start).unwrap()] ^= 1;
            assert_eq!(differences(COMMITTED, &changed).unwrap(), [format!("section {name}")]);
        }
    }
}
