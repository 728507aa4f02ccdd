//! From a request to a mail: body within its bounds, content type, charset, fields. All that a caller can get wrong is
//! refused here, by name.

mod body;
mod json;
mod mail;
mod media_type;
pub(super) mod parameters;
pub(super) mod query;
mod router;
mod surrogates;
mod values;

pub(super) use body::read_body;
pub(super) use json::{Item, Object, decode_json, parse_json, parse_json_by};
#[cfg(test)]
pub(super) use mail::MAIL_FIELDS;
pub(super) use mail::{mail_of_object, read_mail};
pub(super) use media_type::MediaType;
pub(super) use router::{Asked, ROUTER, live};
pub(super) use values::Budget;
