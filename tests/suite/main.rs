//! What a user would notice, tested on real pages: one binary, its suites in reading order.
//!
//! Timings are not asserted here, except for bounds that only a hang would break; figures come from
//! `nigh bench`. A test that needs something that this machine lacks is skipped and listed at the
//! end: see `skips`. A suite of a cargo feature is built with that feature only.

/// A browser without a screen.
mod browser;
/// Running the program, and reading its tables.
mod program;
/// A real object store.
#[cfg(feature = "cloud")]
mod seaweed;
/// What tests need of the machine, and how they report that it is not there.
mod skips;

/// The sampled accuracy of clusters against a plain walk.
mod accuracy;
/// Web archives as their writers leave them.
mod archives;
/// What a crawler need not fetch, against a twin and against the pages.
mod avoid;
/// Batches that are added to a store, whose documents stay.
mod batches;
/// Benchmarks of the cluster stage, which check it against a single thread.
mod benchmarks;
/// The pages that `nigh browse` serves: against the tables, with hostile texts and requests, and in
/// a browser.
#[cfg(feature = "live")]
mod browse;
/// The logs of Delta Lake list just the files of a store.
#[cfg(feature = "cloud")]
mod catalog;
/// Jobs whose fields changed since their week was made.
mod changed_jobs;
/// Which documents stay by the user's columns, against a slow twin.
mod chosen;
/// Which documents stay by columns that the store does not have, against the same twin.
mod chosen_at_export;
/// Clusters against brute force and sequential union-find.
mod clusters;
/// Replicated collections against sets and maps over pages and links.
mod collections;
/// What the docs say of lines with one hash.
mod collide;
/// The command line: flags, exit codes, messages, mistakes in jobs and configs.
mod commandline;
/// The components operators against sequential union-find and differential dataflow's `propagate`.
mod components;
/// Rules of the source: lines of comments, names of types.
mod conventions;
/// Exports in another format than that of the inputs.
mod conversions;
/// Datasets of records with ids or without any.
mod datasets;
/// Documents against a reference, and planted leaks.
mod decontamination;
/// Deleted pages and removed weeks.
mod deletion;
/// The files by which others run nigh: images, schedulers, releases.
mod deployment;
/// The same bytes whatever the workers, the processes and the order of inputs.
mod determinism;
/// Damaged and hostile files: each gives the pages and rejects that its manifest states.
mod dirty;
/// Commands and queries of README.md and docs/ print what these say.
mod documents;
/// Runs whose hosts come and go.
mod elastic;
/// Inputs with relative names, looked for from other folders than that of the run.
mod elsewhere;
/// The evolution of clusters against brute force over URLs, on stores with random histories.
mod evolution;
/// Datasets that are written again without duplicates.
mod export;
/// Processes that are killed or freeze: the run restarts them by itself.
mod faults;
/// Runs with more workers than the store has shards.
mod few_shards;
/// The figures of the papers, against the tables and in a browser.
mod figures;
/// Every format and odd name gives the same pages.
mod formats;
/// The fuzz targets, with inputs that a fuzzer found.
mod fuzzed;
/// The tables as they were reviewed: golden text and digests.
mod golden;
/// Histories of small stores, with deletions and removed weeks.
mod histories;
/// Which of several hosts stays, by brute force.
mod host_order;
/// Datasets of a hub, listings of a web server, and buckets that cannot be read.
#[cfg(feature = "cloud")]
mod hub;
/// Rows in the memory of Python, streams and notebooks.
#[cfg(feature = "live")]
mod in_memory;
/// Pipes, files that are cut short or changed, and folders with more than inputs.
mod inputs;
/// Inputs of earlier batches are read again as their run read them.
mod inputs_again;
/// Unauthenticated peers are refused; processes work over TLS.
#[cfg(feature = "pool")]
mod intruders;
/// What a week keeps besides clusters: chunks of pages, redirects, failed downloads by host.
mod kept;
/// Links of pages that stay, to what came in another batch.
mod late_links;
/// What exports of archives leave out.
mod left_out;
/// Documents that come and go over HTTP: against one run over what is there; kills; hostile
/// clients.
#[cfg(feature = "live")]
mod live;
/// Clients of a live process in Python.
#[cfg(feature = "live")]
mod live_clients;
/// Commits that a live process makes by itself, and the lock meanwhile.
#[cfg(feature = "live")]
mod live_commits;
/// Exact similarities of a live process.
#[cfg(feature = "live")]
mod live_exact;
/// Files that grow, which a live process follows.
#[cfg(feature = "live")]
mod live_follow;
/// Clients that harm a live process, and the memory that they take.
#[cfg(feature = "live")]
mod live_hostile;
/// A live process with others that have a part of the keys, and what kills and stops of these do.
#[cfg(feature = "live")]
mod live_processes;
/// Documents of ready features in a live process.
#[cfg(feature = "live")]
mod live_ready;
/// A live process with TLS, and clients that do not keep to it.
#[cfg(feature = "live")]
mod live_tls;
/// A live process on stores whose method verifies clusters.
#[cfg(feature = "live")]
mod live_verified;
/// Clusters, pages and the nearest documents, as they are looked up, against the tables.
mod look;
/// Pages by their main content, against their texts alone.
#[cfg(all(feature = "live", feature = "main-content"))]
mod main_content;
/// What matches a reference, with an order by columns of the inputs, and in source code.
mod matched_choices;
/// Mirrors by content against pairs of hosts, one by one.
mod mirrors;
/// Mirrors by URL against a twin of dictionaries.
mod mirrors_by_url;
/// What could not be downloaded, against a plain walk over the tables and the inputs.
mod missing;
/// What an export says of near-duplicates, against the tables.
mod near_duplicates;
/// A store in a bucket of a real server.
#[cfg(feature = "cloud")]
mod objects;
/// Batches of which only what duplicates an older one goes.
mod only_older;
/// How often a run opens the files that it makes.
mod opened;
/// Rare types of Parquet and Arrow files.
mod other_types;
/// Pages and hosts that share chunks, against brute force over all pairs.
mod overlap;
/// The page that `nigh report` writes.
mod page;
/// Exports without paragraphs most of whose n-grams stand before.
mod paragraph_overlap;
mod paragraphs;
/// Parquet of other programs keeps what it is.
mod parquet_kept;
/// Crawls of a part of the pages.
mod partial;
/// Repeated passages, against all windows of the texts.
mod passages;
/// A pool of three hosts with a real sshd each.
#[cfg(all(feature = "cloud", feature = "pool"))]
mod pool;
/// Tables open in DuckDB, Polars and pyarrow.
mod queries;
/// The items of hostile files and good weeks, record by record.
mod readers;
/// Links through redirects count for the studies.
mod redirected;
/// Exports with columns under other names, against those without.
mod renamed;
/// Exports of archives: revisits, WACZ and indexes; pywb replays them.
mod replay;
/// Exports that refer to pages of the weeks before.
mod replay_weeks;
/// A store that gets more shards, against one that had them from the first.
mod reshard;
/// What a revisit record says of its page, case by case.
mod revisit_cases;
/// Random histories of captures and revisits, against a twin that keeps every page.
mod revisit_histories;
/// Revisit records, against crawls that have the pages in full.
mod revisits;
/// Samplers of shingles against sets of images.
mod samplers;
/// The set join against all pairs by brute force.
mod set_join;
/// Exports in shards, against those without.
mod shards;
/// The files of the tables of studies, those of older versions too.
mod study_files;
/// Interrupted runs continue where they stopped; full disks and damaged stores are reported.
mod survival;
/// Tables as other programs read them.
mod table;
/// Tasks that a scheduler starts, SLURM or Kubernetes.
#[cfg(feature = "pool")]
mod tasks;
/// Texts in several columns, as those of one.
mod text_columns;
/// Exports of clusters at another similarity, and of a number of records.
mod thresholds;
/// Exports are whole, and touch nothing of others.
mod transactions;
/// Recall, estimates and chains against the exact similarity of real pages.
mod truth;
/// Runs that nobody watches: flags, weeks by the clock, variables, events and metrics.
mod unattended;
/// A store of an older version is brought up to date.
mod upgrade;
/// Clusters whose pages are checked, against brute force over pairs.
mod verify;
/// A made web with the truth about it, and slow twins over it, for the tests of jobs.
mod web;
/// Week over week: from what changed and from all pages, with the same tables.
mod weekly;
/// Why two pages are in one cluster, against tables and texts.
mod why;
mod wordless;
/// Other words than letters and digits, and texts that are short.
mod words;
