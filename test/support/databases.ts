/** Which test files run on which database: everything on SQLite, what rooms keep in rows on PostgreSQL as well. */

/** Tests of PostgreSQL itself, and of replicas, which share one. */
export const onPostgres = ['test/postgres-*.test.ts', 'test/replicas-*.test.ts']

/**
 * The tests of rooms: they say nothing of which database there is, so they hold on both. Those of limits do not: on PostgreSQL these go
 * by its clock, which no test moves (`replicas-limits`).
 */
export const onBothDatabases = [
  'admin*',
  'agent-*',
  'agents*',
  'artifacts-{access,list,page,serving,status}',
  'audit',
  'chat-{breaker,failures,fallbacks,interruptions,models,rpc,slots,stream}',
  'console-{claims,cross-site,desk,identity,moves,sign-in}',
  'embeddings',
  'errors',
  'files',
  'files-{downloads,quota,sweep}',
  'former-secrets',
  'health',
  'jobs-{conversion,hook,refused}',
  'keys',
  'keys-at-rest',
  'manager-agents',
  'model-policy',
  'models',
  'never-500.property',
  'responses-agents',
  'routes',
  'rpc',
  'scale-plans',
  'tools-agents',
  'uploads-{bytes,completion,creation,leases,metadata,protocol,races,room,s3,sweep}',
  'usage',
  'usage-{budgets,embeddings}',
].map((name) => `test/${name}.test.ts`)
