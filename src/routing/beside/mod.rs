//! Who is asked beside the default router: a canary, which answers a share of its mail, and a shadow, which is asked about the
//! same mail and never answers.

mod canary;
mod report;
mod shadow;

pub use canary::CanaryFigures;
pub use report::ShadowReport;

use std::sync::Arc;

use self::canary::Canary;
use self::shadow::Shadow;
use super::routers::{RoutersConfig, Slot};
use super::{Decision, Mail, RoutingError, RoutingService};
use crate::inference::Caller;

/// The routers beside the default one. They stay when it is exchanged.
pub struct Beside {
    canary: Option<Canary>,
    shadow: Option<Shadow>,
}

impl Beside {
    /// Those that the settings name; `None` where they name none. The error is the setting and the name that is no other router.
    pub(super) fn of(
        config: &RoutersConfig,
        default: &Slot,
        find: impl Fn(&str) -> Option<Arc<Slot>>,
    ) -> Result<Option<Self>, (&'static str, String)> {
        let named = |setting, name: &Option<String>| match name {
            None => Ok(None),
            Some(name) => match find(name).filter(|slot| slot.name() != default.name()) {
                Some(slot) => Ok(Some(slot)),
                None => Err((setting, name.clone())),
            },
        };
        let canary = named("routers.canary", &config.canary)?.map(|slot| Canary::new(slot, config.canary_share));
        let shadow = named("routers.shadow", &config.shadow)?.map(Shadow::new);
        Ok((canary.is_some() || shadow.is_some()).then_some(Self { canary, shadow }))
    }

    /// What the canary did; `None` where there is none.
    #[must_use]
    pub fn canary(&self) -> Option<CanaryFigures> {
        self.canary.as_ref().map(Canary::figures)
    }

    /// Where the shadow agrees with the router in force; `None` where there is no shadow.
    #[must_use]
    pub fn shadow(&self) -> Option<ShadowReport> {
        self.shadow.as_ref().map(Shadow::report)
    }

    /// The canary in force.
    pub(super) fn canary_live(&self) -> Option<Arc<RoutingService>> {
        self.canary.as_ref().and_then(Canary::live)
    }

    /// Decides on one mail of the default router, whose version in force is `live`.
    pub(super) async fn decide(
        &self,
        live: &Arc<RoutingService>,
        mail: Mail,
        caller: Caller,
    ) -> Result<Decision, RoutingError> {
        if let Some(canary) = &self.canary
            && let Some(decision) = canary.decide(&mail, caller).await
        {
            return Ok(decision);
        }
        let copy = self.shadow.as_ref().and_then(|shadow| shadow.copy(&mail));
        let decision = live.decide(mail, caller).await?;
        if let Some(copy) = copy {
            copy.score(Arc::clone(live), &decision);
        }
        Ok(decision)
    }
}
