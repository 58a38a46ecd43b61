//! Things that a user chooses by name. An unknown name is refused with the list of known ones.

use clap::Args;
use nandina::flash::profile::{self, Profile};
use nandina_lab::LabError;
use nandina_lab::layer::{Layer, TransitBuffer, name_of};
use nandina_lab::rivals;
use nandina_lab::systems::{SYSTEMS, stack, stacks, usual_layer};

/// Returns the chip of this name.
pub fn device(key: &str) -> Result<Profile, LabError> {
    profile::find(key).copied().ok_or_else(|| {
        let known: Vec<_> = profile::PROFILES.iter().map(|profile| profile.key).collect();
        LabError(format!("there is no device '{key}': choose from {}", known.join(", ")))
    })
}

/// Returns the systems of these names, above each of `layers`; all of them if `keys` is empty.
///
/// `ipl` and `dipl` are B-trees on an FTL of their own, and run on that one alone: if there are
/// only these, a layer is refused.
pub fn chosen(
    keys: &[String],
    layers: &[Option<Layer>],
) -> Result<Vec<(&'static str, Option<Layer>)>, LabError> {
    let on_their_own: Vec<_> = keys.iter().filter_map(|key| stack(key)).collect();
    let others: Vec<_> = keys.iter().filter(|key| stack(key).is_none()).cloned().collect();
    let are_stacks = others.is_empty() && !keys.is_empty();
    if are_stacks && layers.iter().any(Option::is_some) {
        let what = format!("{} has an FTL of its own: leave --over out", keys[0]);
        return Err(LabError(what));
    }
    let systems = if are_stacks { Vec::new() } else { with_rivals(&others)? };
    let above = |&layer: &Option<Layer>| systems.iter().map(move |&system| (system, layer));
    let mut chosen: Vec<_> = layers.iter().flat_map(above).collect();
    chosen.extend(on_their_own.into_iter().map(|(system, layer)| (system, Some(layer))));
    Ok(chosen)
}

/// Returns the systems of these names; all of them if `keys` is empty.
pub fn systems(keys: &[String]) -> Result<Vec<&'static str>, LabError> {
    named(keys, SYSTEMS.iter().map(|system| system.key).collect())
}

/// The same, where `bftl`, `la` and `mb` can be named, too.
pub fn with_rivals(keys: &[String]) -> Result<Vec<&'static str>, LabError> {
    if keys.is_empty() {
        return systems(keys);
    }
    named(keys, SYSTEMS.iter().chain(rivals::SYSTEMS).map(|system| system.key).collect())
}

/// Returns the systems of these names, which are among the `known` ones.
fn named(keys: &[String], known: Vec<&'static str>) -> Result<Vec<&'static str>, LabError> {
    if keys.is_empty() {
        return Ok(known);
    }
    let system = |key: &String| {
        known.iter().copied().find(|known| known == key).ok_or_else(|| {
            let known: Vec<_> = known.iter().chain(&stacks()).copied().collect();
            let known = known.join(", ");
            LabError(format!("there is no system '{key}': choose from {known}"))
        })
    };
    keys.iter().map(system).collect()
}

/// Settings of hybrid FTLs.
#[derive(Args, Clone, Copy, Default)]
pub struct HybridSettings {
    /// With an FTL that has log blocks: how many, of bast 1 and more, of fast 2 and more [default:
    /// 16]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    log_blocks: Option<u32>,
    /// With an FTL without log records: blocks of the WPCB-tree's transit buffer before it, 1 and
    /// more [default: no buffer]
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    transit: Option<u32>,
    /// With --transit: as the paper has it, without improvements
    #[arg(long, requires = "transit")]
    as_printed: bool,
}

impl HybridSettings {
    /// Whether anything is set.
    pub const fn is_set(&self) -> bool {
        self.log_blocks.is_some() || self.transit.is_some()
    }

    /// The layer with what is set here, as far as it has that.
    pub fn of(&self, layer: Layer, over_provisioning: Option<u32>) -> Result<Layer, LabError> {
        let layer = match over_provisioning {
            Some(per_cent) => layer.with_over_provisioning(per_cent),
            None => layer,
        };
        let layer = match (layer.log_blocks(), self.log_blocks) {
            (Some(_), Some(count)) => layer.with_log_blocks(count)?,
            _ => layer,
        };
        match self.transit() {
            Some(transit) if layer.takes_transit() => layer.with_transit(transit),
            _ => Ok(layer),
        }
    }

    /// Refuses what is set if no layer has that.
    fn check(
        &self,
        layers: &[Option<Layer>],
        over_provisioning: Option<u32>,
    ) -> Result<(), LabError> {
        let has_log_blocks = |layer: &Layer| layer.log_blocks().is_some();
        if self.log_blocks.is_some() && !layers.iter().flatten().any(has_log_blocks) {
            let what = "--log-blocks is for bast and fast: choose one of them by --over or --ftl";
            return Err(LabError(what.into()));
        }
        if self.transit.is_some() && !layers.iter().flatten().any(Layer::takes_transit) {
            let what = "--transit is for page, block, bast and fast: choose one of them by --over or --ftl";
            return Err(LabError(what.into()));
        }
        if over_provisioning.is_some() && !layers.iter().any(Option::is_some) {
            return Err(LabError("--op is for an FTL: choose one by --over".into()));
        }
        Ok(())
    }

    /// The transit buffer, if one is chosen.
    pub fn transit(&self) -> Option<TransitBuffer> {
        self.transit.map(|blocks| TransitBuffer { blocks, as_printed: self.as_printed })
    }
}

/// Returns what lies below the systems, by name; `none` is the chip itself.
///
/// `settings` are for those of them that have what is set, and `over_provisioning` for all.
/// Settings that none of them has are refused.
pub fn layers(
    names: &[String],
    settings: HybridSettings,
    over_provisioning: Option<u32>,
) -> Result<Vec<Option<Layer>>, LabError> {
    let layers = layers_named(names, settings, over_provisioning)?;
    settings.check(&layers, over_provisioning)?;
    Ok(layers)
}

/// Returns the systems of these names with what lies below each, as [`chosen`] does.
///
/// A system that usually has an FTL below it on `chip`, and none by name, has that one with what is
/// set here.
pub fn chosen_over(
    keys: &[String],
    names: &[String],
    settings: HybridSettings,
    over_provisioning: Option<u32>,
    chip: &Profile,
) -> Result<Vec<(&'static str, Option<Layer>)>, LabError> {
    let mut chosen = chosen(keys, &layers_named(names, settings, over_provisioning)?)?;
    let is_set = settings.is_set() || over_provisioning.is_some();
    for (system, layer) in chosen.iter_mut().filter(|(_, layer)| is_set && layer.is_none()) {
        let usual = usual_layer(system, chip);
        *layer = usual.map(|layer| settings.of(layer, over_provisioning)).transpose()?;
    }
    let layers: Vec<_> = chosen.iter().map(|&(_, layer)| layer).collect();
    settings.check(&layers, over_provisioning)?;
    // One that was named, and the usual one of a system, may be the same.
    let mut names = Vec::new();
    chosen.retain(|&(system, layer)| {
        let name = name_of(system, layer);
        let is_new = !names.contains(&name);
        names.push(name);
        is_new
    });
    Ok(chosen)
}

fn layers_named(
    names: &[String],
    settings: HybridSettings,
    over_provisioning: Option<u32>,
) -> Result<Vec<Option<Layer>>, LabError> {
    let layer = |name: &String| {
        if name == NO_LAYER {
            return Ok(None);
        }
        let below = name.split(' ').next().unwrap_or(name);
        let is_known = Layer::names().iter().any(|known| known == below);
        let layer = Layer::named(name).map_err(|error| match is_known {
            true => error,
            false => LabError(format!("{error}, {NO_LAYER}")),
        })?;
        let twice = [
            (settings.log_blocks.is_some() && layer.names_log_blocks(), "--log-blocks"),
            (settings.transit.is_some() && layer.buffer_blocks().is_some(), "--transit"),
        ];
        if let Some((_, option)) = twice.iter().find(|(is_twice, _)| *is_twice) {
            return Err(LabError(format!("'{name}' says how many: leave {option} out")));
        }
        settings.of(layer, over_provisioning).map(Some)
    };
    names.iter().map(layer).collect()
}

/// The name of no layer at all.
const NO_LAYER: &str = "none";
