//! The settings of the host in a reload: graph and settings are both read, and both or none are applied.

use super::{GraphSource, OPERATOR, ReloadRequest, lock};
use crate::api::SettingsChange;
use crate::config::Text;
use crate::workers::errors::SettingsError;
use crate::workers::graph::last_good_settings;
use crate::workers::graph::settings::{
    HostSettings, ReadSettings, SettingsChanger, apply_settings,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The settings file, as needed by the graph loader.
#[derive(Default)]
pub(in crate::workers) struct SettingsFile {
    /// The function that reads the settings again; `None` if there is no settings file.
    pub(in crate::workers) read: Option<ReadSettings>,
    /// The settings file, which is watched with the graph.
    pub(in crate::workers) path: Option<PathBuf>,
    /// The text of the settings that apply, which is stored for a start at which the file is rejected.
    pub(in crate::workers) text: Mutex<Option<Text>>,
    /// The reason why other settings apply than those in the file, if so.
    pub(in crate::workers) instead: Mutex<Option<String>>,
    /// The change that the last reload made.
    pub(in crate::workers) change: Mutex<SettingsChange>,
}

impl std::fmt::Debug for SettingsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ReloadRequest {
    /// Returns the graph source of new settings, or the present one without new settings.
    pub(super) fn graph_of(&self, settings: Option<&HostSettings>) -> GraphSource {
        settings.map_or_else(|| self.graph(), |new| new.graph.clone())
    }

    /// Reads the settings again, if there are any.
    pub(super) async fn read_settings(&self) -> Result<Option<HostSettings>, SettingsError> {
        let Some(read) = self.settings.read.clone() else { return Ok(None) };
        match tokio::task::spawn_blocking(move || read()).await {
            Ok(Ok(settings)) => Ok(Some(settings)),
            Ok(Err(why)) => Err(why.into()),
            Err(panic) => Err(SettingsError::Panicked(panic)),
        }
    }

    /// Reads the graph again with the present settings. Rejected settings change nothing.
    pub(super) async fn reload(
        changer: &SettingsChanger,
        this: &Arc<Self>,
        (settings, who): (Result<Option<HostSettings>, SettingsError>, u8),
    ) {
        *lock(&this.settings.change) = SettingsChange::default();
        match settings {
            Ok(settings) => Self::hand_over(changer, this, (settings, who, false)).await,
            Err(why) => {
                let operator = who & OPERATOR != 0;
                this.reject(why.to_string(), operator);
            }
        }
    }

    /// Applies new settings together with a valid graph.
    pub(super) async fn apply_settings(&self, changer: &SettingsChanger, new: HostSettings) {
        *lock(&self.graph) = new.graph.clone();
        lock(&self.settings.text).clone_from(&new.text);
        *lock(&self.settings.instead) = None;
        let change = apply_settings(changer, new).await;
        *lock(&self.settings.change) = change;
    }

    /// Stores the present settings for a start at which the file is rejected.
    pub(super) async fn store_settings(&self, directory: &Path) {
        let Some(text) = lock(&self.settings.text).clone() else { return };
        let directory = directory.to_owned();
        let stored =
            tokio::task::spawn_blocking(move || last_good_settings::write(&directory, &text)).await;
        if let Ok(Err(error)) = stored {
            tracing::warn!(event = "warning", "the settings cannot be stored: {error}");
        }
    }
}
