//! Where the credentials of a service come from: the environment; or the machine in a cloud that
//! nigh runs on, but only if that is asked for.
//!
//! Without credentials a client would ask the address at which clouds tell a machine its own
//! (169.254.169.254, for instance). Elsewhere something else may answer there, or nothing, after a
//! minute. So a service without credentials is an error, which names the variables. `https` URLs of
//! a cloud's buckets are then read without a signature, as a browser does.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use object_store::ClientConfigKey::AllowHttp;
use object_store::ObjectStoreScheme;
use object_store::aws::AmazonS3ConfigKey as Aws;
use object_store::azure::AzureConfigKey as Azure;
use object_store::gcp::GoogleConfigKey as Google;
use url::Url;

use super::{CREDENTIALS_VARIABLE, hide_passwords};

/// Whether the machine is asked.
static OF_MACHINE: AtomicBool = AtomicBool::new(false);

/// Lets clients take the credentials of the machine.
pub fn use_machine_credentials() {
    OF_MACHINE.store(true, Ordering::Relaxed);
}

/// The environment variable that tells other processes of this program the same, and its value.
pub fn credentials_variable() -> (&'static str, &'static str) {
    let of_machine = OF_MACHINE.load(Ordering::Relaxed);
    (CREDENTIALS_VARIABLE, if of_machine { "instance" } else { "environment" })
}

/// Checks the options of a client for a URL. Those of an `https` URL without credentials ask
/// for no signature.
///
/// # Errors
/// If there are no credentials; or the service has no TLS, and that is not allowed.
pub(super) fn check(url: &Url, options: &mut Vec<(String, String)>) -> Result<()> {
    check_with(url, options, OF_MACHINE.load(Ordering::Relaxed), google_file().as_deref())
}

fn check_with(
    url: &Url,
    options: &mut Vec<(String, String)>,
    of_machine: bool,
    google_file: Option<&std::path::Path>,
) -> Result<()> {
    let Ok((scheme, _)) = ObjectStoreScheme::parse(url) else { return Ok(()) };
    let values = OptionValues(options);
    let service = match scheme {
        ObjectStoreScheme::AmazonS3 => ServiceAccess {
            has: values.has(Aws::AccessKeyId) && values.has(Aws::SecretAccessKey)
                || values.has(Aws::WebIdentityTokenFile) && values.has(Aws::RoleArn)
                || values.has(Aws::ContainerCredentialsRelativeUri)
                || values.has(Aws::ContainerCredentialsFullUri) && values.has(Aws::ContainerAuthorizationTokenFile)
                || values.is_true(Aws::SkipSignature),
            variables: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            skip: "AWS_SKIP_SIGNATURE",
            endpoint: values.get(Aws::S3Endpoint).or_else(|| values.get(Aws::Endpoint)),
            allow_http: ("AWS_ALLOW_HTTP", values.is_true(Aws::Client(AllowHttp))),
        },
        ObjectStoreScheme::GoogleCloudStorage => ServiceAccess {
            has: values.has(Google::ServiceAccount)
                || values.has(Google::ServiceAccountKey)
                || values.has(Google::ApplicationCredentials)
                || values.has(Google::BearerToken)
                || values.is_true(Google::SkipSignature)
                || google_file.is_some_and(std::path::Path::is_file),
            variables: "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
            skip: "GOOGLE_SKIP_SIGNATURE",
            endpoint: values.get(Google::BaseUrl),
            allow_http: ("GOOGLE_ALLOW_HTTP", values.is_true(Google::Client(AllowHttp))),
        },
        ObjectStoreScheme::MicrosoftAzure => ServiceAccess {
            has: values.has(Azure::AccessKey)
                || values.has(Azure::SasKey)
                || values.has(Azure::Token)
                || values.has(Azure::ClientSecret)
                || values.has(Azure::FederatedTokenFile)
                || values.has(Azure::FabricTokenServiceUrl)
                || values.is_true(Azure::UseAzureCli)
                || values.is_true(Azure::UseEmulator)
                || values.is_true(Azure::SkipSignature),
            variables: "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_KEY or AZURE_STORAGE_CLIENT_SECRET",
            skip: "AZURE_SKIP_SIGNATURE",
            endpoint: values.get(Azure::Endpoint),
            allow_http: ("AZURE_ALLOW_HTTP", values.is_true(Azure::Client(AllowHttp))),
        },
        _ => return Ok(()),
    };
    let ServiceAccess { has, variables, skip, endpoint, allow_http: (allow_http, is_allowed) } = service;
    let is_plain = endpoint.as_deref().is_some_and(|endpoint| endpoint.to_ascii_lowercase().starts_with("http://"));
    if is_plain && !is_allowed {
        bail!(
            "the service of {url} is at {}, without TLS: set {allow_http}=true in the environment to use it all the same, or an https address",
            hide_passwords(&endpoint.unwrap_or_default())
        );
    }
    if has || of_machine {
        return Ok(());
    }
    if matches!(url.scheme(), "http" | "https") {
        options.push((skip.to_ascii_lowercase(), "true".to_owned()));
        return Ok(());
    }
    bail!(
        "no credentials in {variables} for {url}: set them in the environment, or {skip}=true for what is public; --cloud-credentials \
         instance takes those of the machine, if it is one of that cloud"
    )
}

/// What is known of a service.
struct ServiceAccess {
    has: bool,
    variables: &'static str,
    skip: &'static str,
    endpoint: Option<String>,
    /// The variable that allows a service without TLS, and whether it does.
    allow_http: (&'static str, bool),
}

/// The options of a client; of several with one name the last one counts.
struct OptionValues<'a>(&'a [(String, String)]);

impl OptionValues<'_> {
    fn get<K: FromStr + PartialEq>(&self, key: K) -> Option<String> {
        let is = |name: &str| name.to_ascii_lowercase().parse::<K>().is_ok_and(|other| other == key);
        let found = self.0.iter().rev().find(|(name, _)| is(name)).map(|(_, value)| value.clone());
        found.filter(|value| !value.is_empty())
    }

    fn has<K: FromStr + PartialEq>(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    fn is_true<K: FromStr + PartialEq>(&self, key: K) -> bool {
        let is_yes = |value: String| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y");
        self.get(key).is_some_and(is_yes)
    }
}

/// The file in which the program `gcloud` keeps a user's credentials.
fn google_file() -> Option<std::path::PathBuf> {
    std::env::home_dir().map(|home| home.join(".config/gcloud/application_default_credentials.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is added to these options, or the message.
    fn checked(url: &str, environment: &[(&str, &str)], of_machine: bool) -> Result<Vec<String>, String> {
        let mut options: Vec<(String, String)> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check_with(&Url::parse(url).unwrap(), &mut options, of_machine, None).map_err(|error| error.to_string())?;
        Ok(options.into_iter().skip(environment.len()).map(|(name, _)| name).collect())
    }

    #[test]
    fn without_credentials_the_variables_are_named() {
        for (url, variable) in [
            ("s3://bucket/", "AWS_ACCESS_KEY_ID"),
            ("s3a://bucket/", "AWS_SECRET_ACCESS_KEY"),
            ("gs://bucket/", "GOOGLE_APPLICATION_CREDENTIALS"),
            ("az://container/", "AZURE_STORAGE_ACCOUNT_KEY"),
            ("abfss://container@account.dfs.core.windows.net/", "AZURE_STORAGE_SAS_KEY"),
        ] {
            let error = checked(url, &[], false).unwrap_err();
            assert!(
                error.contains(variable) && error.contains(url) && error.contains("--cloud-credentials"),
                "{error}"
            );
            assert_eq!(checked(url, &[], true), Ok(Vec::new()), "{url}");
        }
        for half in [
            &[("AWS_ACCESS_KEY_ID", "a")][..],
            &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "")],
            &[("AWS_ROLE_ARN", "a")],
            &[("AWS_SKIP_SIGNATURE", "false")],
            &[("AWS_REGION", "x")],
        ] {
            assert!(checked("s3://bucket/", half, false).is_err(), "{half:?}");
        }
    }

    #[test]
    fn any_credentials_of_the_environment_will_do() {
        for (url, environment) in [
            ("s3://b/", &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")][..]),
            ("s3://b/", &[("AWS_WEB_IDENTITY_TOKEN_FILE", "a"), ("AWS_ROLE_ARN", "b")]),
            ("s3://b/", &[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/a")]),
            ("s3://b/", &[("AWS_SKIP_SIGNATURE", "true")]),
            ("gs://b/", &[("GOOGLE_SERVICE_ACCOUNT_PATH", "/a")]),
            ("gs://b/", &[("GOOGLE_SKIP_SIGNATURE", "1")]),
            ("az://c/", &[("AZURE_STORAGE_ACCOUNT_KEY", "a")]),
            ("az://c/", &[("AZURE_STORAGE_SAS_TOKEN", "a")]),
            ("az://c/", &[("AZURE_USE_AZURE_CLI", "true")]),
            ("https://a.example/", &[]),
        ] {
            assert_eq!(checked(url, environment, false), Ok(Vec::new()), "{url} {environment:?}");
        }
        // As a browser reads it.
        let url = "https://bucket.s3.eu-west-1.amazonaws.com/";
        assert_eq!(checked(url, &[], false), Ok(vec!["aws_skip_signature".to_owned()]));
        assert_eq!(
            checked("https://account.blob.core.windows.net/c", &[], false),
            Ok(vec!["azure_skip_signature".into()])
        );
    }

    #[test]
    fn a_service_without_tls_must_be_allowed() {
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"] {
            let plain = [&keys[..], &[(name, "http://k:s3cret@127.0.0.1:1")]].concat();
            let error = checked("s3://b/", &plain, false).unwrap_err();
            assert!(error.contains("AWS_ALLOW_HTTP=true") && error.contains("@127.0.0.1:1"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
            let allowed = [&plain[..], &[("AWS_ALLOW_HTTP", "true")]].concat();
            assert_eq!(checked("s3://b/", &allowed, false), Ok(Vec::new()));
            let with_tls = [&keys[..], &[(name, "https://127.0.0.1:1")]].concat();
            assert_eq!(checked("s3://b/", &with_tls, false), Ok(Vec::new()));
        }
    }
}
