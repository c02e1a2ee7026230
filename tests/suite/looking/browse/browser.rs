//! Hostile texts, and what a browser shows.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Served, WRITTEN, elements, walk};
use crate::browser::{Browser, complaints};
use crate::looking::figures::BAD_LABELS;
use crate::looking::page::{HOSTILE, hostile, three_weeks};
use crate::program::run_well;

#[test]
fn hostile_texts_are_texts_on_every_page() {
    let folder = tempfile::tempdir().unwrap();
    hostile(folder.path());
    let store = folder.path().join("<script>window.harmed=1<'script'>");
    let served = Served::start(&store, &[]);
    let pages = walk(&served, 25);
    let all: String = pages.values().map(String::as_str).collect();
    assert!(all.contains("&lt;/script&gt;&lt;script&gt;window.harmed"), "the titles are there");
    for c in ['\u{202e}', '\u{2066}', '\u{feff}'] {
        assert!(!all.contains(c), "{c:?}");
    }
    for (path, html) in &pages {
        assert!(html.len() < 3_000_000, "{path}: {} bytes", html.len());
    }
    // What is asked for is hostile, too.
    for text in HOSTILE {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in [
            format!("/search?q={encoded}"),
            format!("/text?text={encoded}"),
            format!("/host?name={encoded}"),
            format!("/{encoded}"),
        ] {
            let answer = served.send("GET", &path, &[]);
            assert!(answer.status < 500, "{path}: {answer:?}");
            let (names, _) = elements(&answer.body, &path);
            assert!(names.iter().all(|name| WRITTEN.contains(&name.as_str())), "{path}: {names:?}");
        }
    }
    let Some(mut browser) = Browser::start("a browser shows hostile pages of a store") else { return };
    for path in pages.keys().filter(|path| path.starts_with("/cluster/") || path.starts_with("/compare")).take(10) {
        let events = browser.visit(&format!("http://{}{path}", served.address));
        assert_eq!(complaints(&events), Vec::<Value>::new(), "{path}");
        assert_eq!(browser.value("window.harmed === undefined"), true);
        assert_eq!(browser.value("document.querySelectorAll('script, style, base, img, iframe, object').length"), 0);
    }
    // The policy holds where escaping would fail.
    let other = "(() => { const script = document.createElement('script'); script.textContent = 'window.harmed = 1'; \
                 document.body.append(script); document.body.insertAdjacentHTML('beforeend', '<p id=late style=\"display:none\">late</p>'); \
                 return window.harmed === undefined && getComputedStyle(document.getElementById('late')).display !== 'none'; })()";
    assert_eq!(browser.value(other), true);
}

#[test]
fn a_browser_shows_all_pages_on_any_screen() {
    let (made, _) = three_weeks();
    let store = made.store();
    for job in ["jobs/mirrors.toml", "jobs/collections.toml"] {
        run_well(&["run", job, "--quiet", "--store", store.to_str().unwrap()]);
    }
    let Some(mut browser) = Browser::start("a browser browses a store") else { return };
    let served = Served::start(&store, &[]);
    let pages = walk(&served, 3);
    let mut paths: Vec<&str> = pages.keys().map(String::as_str).collect();
    paths.extend(["/search?q=releases", "/text?text=one+two+three", "/nothing"]);
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.call("Emulation.setEmulatedMedia", media);
        for width in [390, 800, 1400] {
            let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600});
            browser.call("Emulation.setDeviceMetricsOverride", screen);
            for path in &paths {
                let events = browser.visit(&format!("http://{}{path}", served.address));
                let of_page = complaints(&events);
                assert!(of_page.is_empty() || *path == "/nothing", "{path} {width} {scheme}: {of_page:?}");
                let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(browser.value(beyond), 0, "{path} {width} {scheme}: the page scrolls sideways");
                assert_eq!(browser.value(BAD_LABELS), json!([]), "{path} {width} {scheme}");
                let colour = browser.value("getComputedStyle(document.body).backgroundColor");
                assert_eq!(colour == "rgb(253, 253, 251)", scheme == "light", "{path}: {colour}");
            }
        }
    }
    // By the keyboard: the form of a cluster compares two pages.
    let cluster = paths.iter().find(|path| path.starts_with("/cluster/")).unwrap();
    browser.visit(&format!("http://{}{cluster}", served.address));
    browser.value("document.querySelector('form[action=\"/compare\"] button').focus()");
    browser.press("Enter", Some("\r"));
    let begun = Instant::now();
    while browser.value("location.pathname") != "/compare" {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", browser.value("location.href"));
        std::thread::sleep(Duration::from_millis(50));
    }
    // Nothing was asked of another address.
    let asked = browser.value("performance.getEntriesByType('resource').map((entry) => entry.name)");
    let own = format!("http://{}/", served.address);
    assert!(asked.as_array().unwrap().iter().all(|name| name.as_str().unwrap().starts_with(&own)), "{asked}");
    if let Some(folder) = std::env::var_os("NIGH_PICTURES") {
        pictures(&mut browser, &served, &paths, Path::new(&folder));
    }
}

/// Writes what the browser shows, for a person to look at.
fn pictures(browser: &mut Browser, served: &Served, paths: &[&str], folder: &Path) {
    use base64::Engine as _;
    for (number, path) in paths.iter().enumerate() {
        for (width, scheme) in [(390, "dark"), (1400, "light")] {
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.call("Emulation.setEmulatedMedia", media);
            let screen = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600});
            browser.call("Emulation.setDeviceMetricsOverride", screen);
            browser.visit(&format!("http://{}{path}", served.address));
            let shown = browser.call("Page.captureScreenshot", json!({"format": "png"}));
            let bytes = base64::engine::general_purpose::STANDARD.decode(shown["data"].as_str().unwrap()).unwrap();
            let kind: String = path.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
            std::fs::write(folder.join(format!("{number:02}-{kind}-{width}.png")), bytes).unwrap();
        }
    }
}
