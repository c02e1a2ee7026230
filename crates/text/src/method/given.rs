//! The method as a job gives it.

use serde::{Deserialize, Serialize};

use super::{Method, MethodTable};

/// The `[cluster.method]` table of a job. Where it does not name `shards`, they are those of the
/// store, which `nigh reshard` may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MethodTable", into = "MethodTable")]
pub struct GivenMethod {
    /// The method, with the default for shards that are not named.
    pub method: Method,
    /// Whether the job names the shards.
    pub names_shards: bool,
}

impl GivenMethod {
    /// The method of a week in a store that has this one, or none yet.
    pub fn in_store(self, of_store: Option<&Method>) -> Method {
        let shards = of_store.filter(|_| !self.names_shards).map(|method| method.shards);
        Method { shards: shards.unwrap_or(self.method.shards), ..self.method }
    }
}

/// With its shards.
impl From<Method> for GivenMethod {
    fn from(method: Method) -> GivenMethod {
        GivenMethod { method, names_shards: true }
    }
}

impl TryFrom<MethodTable> for GivenMethod {
    type Error = String;

    fn try_from(table: MethodTable) -> Result<GivenMethod, String> {
        let names_shards = table.shards.is_some();
        Ok(GivenMethod { method: Method::try_from(table)?, names_shards })
    }
}

impl From<GivenMethod> for MethodTable {
    fn from(given: GivenMethod) -> MethodTable {
        let table = MethodTable::from(given.method);
        MethodTable { shards: table.shards.filter(|_| given.names_shards), ..table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_a_job_does_not_name_are_those_of_the_store() {
        let of_store = Method { shards: 256, ..Method::default() };
        let shards = |text: &str, of_store: Option<&Method>| {
            let given: GivenMethod = toml::from_str(text).unwrap();
            assert_eq!(toml::from_str::<GivenMethod>(&toml::to_string(&given).unwrap()).unwrap(), given);
            let method = given.in_store(of_store);
            assert_eq!(method.agreements, 3, "other numbers are those of the job");
            method.shards
        };
        assert_eq!(shards("agreements = 3", Some(&of_store)), 256);
        assert_eq!(shards("agreements = 3", None), 64);
        assert_eq!(shards("agreements = 3\nshards = 64", Some(&of_store)), 64);
        assert_eq!(shards("agreements = 3\nshards = 8", None), 8);
    }
}
