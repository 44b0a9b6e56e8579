//! `campaign.toml`: everything that is decided before the first request.

mod check;
mod error;
mod keys;

pub use error::CampaignError;
pub use keys::{
    AgentKeys, Api, ArmKeys, Arrivals, BackendKeys, BaselineMultiple, CampaignKeys, Comparison,
    DerivedKeys, FixedSlo, ImportedKeys, LengthControl, LoadKeys, ProbeKeys, RequestKeys,
    SingleTokenPolicy, SloKeys, StatisticsKeys, ThresholdKeys, TraceKeys, WarmupKeys,
};

use std::path::{Path, PathBuf};

/// A campaign that passed every check, with the bytes that are hashed.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    keys: CampaignKeys,
    bytes: Vec<u8>,
    path: PathBuf,
}

impl Campaign {
    /// Reads and checks a campaign file.
    ///
    /// # Errors
    /// [`CampaignError`], which names the file, the line and the mend.
    pub fn load(path: &Path) -> Result<Self, CampaignError> {
        let bytes = crate::input::read_regular(path)
            .map_err(|source| CampaignError::Io { path: path.to_owned(), source })?;
        Self::parse(bytes, path)
    }

    /// Checks the bytes of a campaign; `path` is named in errors, and its directory is the base of
    /// the paths in it.
    ///
    /// # Errors
    /// [`CampaignError`], which names the file, the line and the mend.
    pub fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self, CampaignError> {
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| CampaignError::Encoding { path: path.to_owned() })?;
        let keys: CampaignKeys = toml::from_str(text).map_err(|source| CampaignError::Syntax {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        check::check(&keys).map_err(|fault| fault.at(path, text))?;
        Ok(Self { keys, bytes, path: path.to_owned() })
    }

    /// The settings.
    #[must_use]
    pub fn keys(&self) -> &CampaignKeys {
        &self.keys
    }

    /// The file, byte for byte.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A path of the campaign, relative to the campaign's own directory.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.directory().join(path)
    }

    /// Directory of the campaign file.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The campaign file, as it was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The floor arm, of which there is exactly one.
    #[must_use]
    pub fn floor(&self) -> &ArmKeys {
        let found = self.keys.arm.iter().position(|arm| arm.floor);
        &self.keys.arm[found.unwrap_or(0)]
    }

    /// Rates, ascending.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        let mut rates = self.keys.load.rates_rps.clone();
        rates.sort_by(f64::total_cmp);
        rates
    }
}

#[cfg(test)]
mod tests;
