-- The tables of a nigh store as views for DuckDB. nigh replaces this file with each commit.
--
-- In the folder of the store:    duckdb -init views.sql
-- From elsewhere:                SET VARIABLE nigh_store = 'path/of/the/store/'; then .read path/of/the/store/views.sql

-- The share of features that two rows of `features` have in common: an estimate of the resemblance of the two pages.
CREATE OR REPLACE MACRO nigh_similarity(a, b) AS
  len(list_filter(range(octet_length(a) // 2), lambda i:
    substr(hex(a), CAST(4 * i + 1 AS INTEGER), 4) = substr(hex(b), CAST(4 * i + 1 AS INTEGER), 4)))
  / (octet_length(a) // 2);
-- How many supershingles two rows of `features` have in common: 2 of 6 make pages very similar in the study.
CREATE OR REPLACE MACRO nigh_agreements(a, b) AS
  len(list_filter(range(octet_length(a) // 8), lambda i:
    substr(hex(a), CAST(16 * i + 1 AS INTEGER), 16) = substr(hex(b), CAST(16 * i + 1 AS INTEGER), 16)));

CREATE OR REPLACE VIEW accuracy AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'accuracy/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'accuracy/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW changes AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'changes/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'changes/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW chunks AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'chunks/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'chunks/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW clusters AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'clusters/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'clusters/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW documents AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'documents/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'documents/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW evidence AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'evidence/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'evidence/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW features AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'features/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'features/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW host_failures AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'host-failures/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'host-failures/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW largest AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'largest/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'largest/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW links AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'links/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'links/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW missing AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'missing/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'missing/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW redirects AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'redirects/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'redirects/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW rejects AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'rejects/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'rejects/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW sizes AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'sizes/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'sizes/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW split_off AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'split-off/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'split-off/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW summary AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'summary/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'summary/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW urls AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'urls/week=2024-01-08/nigh-00001-*.parquet',
  coalesce(getvariable('nigh_store'), '') || 'urls/week=2024-01-15/nigh-00002-*.parquet'
], hive_partitioning = true, hive_types = {'week': DATE});

CREATE OR REPLACE VIEW overlap_components AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/components/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_families AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/families/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_family_chunks AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/family-chunks/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_host_overlap AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/host-overlap/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_most AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/most/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_overlap AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/overlap/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_reasons AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/reasons/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_replicas AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/replicas/nigh-00003-*.parquet'
]);

CREATE OR REPLACE VIEW overlap_savings AS SELECT * FROM read_parquet([
  coalesce(getvariable('nigh_store'), '') || 'overlap/savings/nigh-00003-*.parquet'
]);
