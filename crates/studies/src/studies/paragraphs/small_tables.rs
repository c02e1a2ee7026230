//! The small tables of the paragraphs job, from its summary and from what all workers found.

use anyhow::Result;

use super::summarize::ParagraphsFound;
use super::{ParagraphsSummary, REGIONS};
use crate::tables::studies::paragraphs::{ClusterSiteRow, ClusterSizeRow, EstimateRow, GrowthRow, SeedRow};

/// Writes the small tables. Worker 0 calls it.
pub(super) fn write_small(found: &ParagraphsFound<'_>, summary: &ParagraphsSummary) -> Result<()> {
    let plan = found.plan;
    plan.write(summary.regions.iter().cloned())?;
    plan.write(summary.coverage.iter().cloned())?;
    let sizes = REGIONS.into_iter().zip(&found.counts.sizes).flat_map(|(region, sizes)| {
        let several = sizes.range(2..);
        several.map(move |(size, clusters)| ClusterSizeRow { region, size: *size as i64, clusters: *clusters as i64 })
    });
    plan.write(sizes)?;
    let sites = found.sites.iter().map(|(size, of)| ClusterSiteRow {
        size: *size as i64,
        clusters: of.clusters as i64,
        one_host: of.one_host as i64,
        one_site: of.one_site as i64,
    });
    plan.write(sites)?;
    let mut so_far = GrowthRow { step: 0, documents: 0, clusters: 0, duplicates: 0 };
    let growth = found.growth.steps.iter().map(|step| {
        so_far.step += 1;
        so_far.documents += step.documents as i64;
        so_far.clusters += step.clusters;
        so_far.duplicates += step.duplicates as i64;
        so_far.clone()
    });
    plan.write(growth)?;
    let all = found.counts.duplicates(0) as i64;
    let estimates = summary.estimates.iter().map(|of| EstimateRow {
        steps: of.steps as i32,
        of_week: of.of_week,
        found: of.found as i64,
        estimated: of.estimated,
        duplicates: all,
        share: of.share,
        error: of.error,
        published: of.published,
    });
    plan.write(estimates)?;
    let seeds = found.seeds.iter().zip(1..).map(|(seed, rank)| SeedRow {
        rank,
        doc: seed.doc.to_table(),
        url: found.url(seed),
        from_hosts: seed.in_links.map(|[others, _]| others as i64),
        in_links: seed.in_links.map(|[_, all]| all as i64),
        reached: seed.reached as i64,
        core: seed.core.map(|core| core as i64),
        chosen: seed.is_chosen,
    });
    plan.write(seeds)?;
    plan.write(summary.turnover.iter().cloned())
}
