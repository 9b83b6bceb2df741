/**
 * Lists the migrations in order. Each name is a number and a verb phrase; a released migration is never
 * edited.
 */
import type { Migration } from 'kysely'
import * as createKeysAndAgents from './0001_create_keys_and_agents.ts'
import * as createUsage from './0002_create_usage.ts'
import * as createFiles from './0003_create_files.ts'
import * as addModelPolicies from './0004_add_model_policies.ts'
import * as createUsers from './0005_create_users.ts'
import * as createAudit from './0006_create_audit.ts'
import * as indexStoredBytes from './0007_index_stored_bytes.ts'
import * as createArtifacts from './0008_create_artifacts.ts'
import * as createInstallation from './0009_create_installation.ts'
import * as createJobs from './0010_create_jobs.ts'
import * as createSessions from './0011_create_sessions.ts'
import * as indexArtifactsByCreation from './0012_index_artifacts_by_creation.ts'
import * as addInstallationSecret from './0013_add_installation_secret.ts'
import * as createSharedCounts from './0014_create_shared_counts.ts'
import * as addManagedKeys from './0015_add_managed_keys.ts'
import * as indexUsageCalls from './0016_index_usage_calls.ts'
import * as addArrivedBytes from './0017_add_arrived_bytes.ts'
import * as addArtifactEndings from './0018_add_artifact_endings.ts'
import * as addConversionEvents from './0019_add_conversion_events.ts'
import * as createProviders from './0020_create_providers.ts'
import * as indexSortedLists from './0021_index_sorted_lists.ts'
import * as addAgentBin from './0022_add_agent_bin.ts'
import * as addCallAttempts from './0023_add_call_attempts.ts'
import * as indexUsageDaysByAgent from './0024_index_usage_days_by_agent.ts'
import * as createWebhooks from './0025_create_webhooks.ts'
import * as addArtifactBin from './0026_add_artifact_bin.ts'
import * as createVisitorSecrets from './0027_create_visitor_secrets.ts'
import * as addVisitorUploads from './0028_add_visitor_uploads.ts'
import * as addCosts from './0030_add_costs.ts'
import * as replaceBudgets from './0031_replace_budgets.ts'
import * as createPriceOverrides from './0033_create_price_overrides.ts'
import * as addBudgetEvents from './0034_add_budget_events.ts'
import * as addNotesAndRequestIndex from './0036_add_notes_and_request_index.ts'
import * as createModelMeters from './0037_create_model_meters.ts'

export const migrations: Record<string, Migration> = {
  '0001_create_keys_and_agents': createKeysAndAgents,
  '0002_create_usage': createUsage,
  '0003_create_files': createFiles,
  '0004_add_model_policies': addModelPolicies,
  '0005_create_users': createUsers,
  '0006_create_audit': createAudit,
  '0007_index_stored_bytes': indexStoredBytes,
  '0008_create_artifacts': createArtifacts,
  '0009_create_installation': createInstallation,
  '0010_create_jobs': createJobs,
  '0011_create_sessions': createSessions,
  '0012_index_artifacts_by_creation': indexArtifactsByCreation,
  '0013_add_installation_secret': addInstallationSecret,
  '0014_create_shared_counts': createSharedCounts,
  '0015_add_managed_keys': addManagedKeys,
  '0016_index_usage_calls': indexUsageCalls,
  '0017_add_arrived_bytes': addArrivedBytes,
  '0018_add_artifact_endings': addArtifactEndings,
  '0019_add_conversion_events': addConversionEvents,
  '0020_create_providers': createProviders,
  '0021_index_sorted_lists': indexSortedLists,
  '0022_add_agent_bin': addAgentBin,
  '0023_add_call_attempts': addCallAttempts,
  '0024_index_usage_days_by_agent': indexUsageDaysByAgent,
  '0025_create_webhooks': createWebhooks,
  '0026_add_artifact_bin': addArtifactBin,
  '0027_create_visitor_secrets': createVisitorSecrets,
  '0028_add_visitor_uploads': addVisitorUploads,
  '0030_add_costs': addCosts,
  '0031_replace_budgets': replaceBudgets,
  '0033_create_price_overrides': createPriceOverrides,
  '0034_add_budget_events': addBudgetEvents,
  '0036_add_notes_and_request_index': addNotesAndRequestIndex,
  '0037_create_model_meters': createModelMeters,
}
