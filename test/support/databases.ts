/** Lists the tests that run on PostgreSQL as well as on SQLite: those of modules that store rows. */

const api = [
  'admin/*',
  'agents/*',
  'artifacts/{access,list,page,serving,status,jobs-hook,jobs-refused,uploads-*}',
  'chat/{agent-*,breaker,concurrent-streams,failures,fallbacks,interruptions,models,rpc,stream}',
  'console/{claimed-data,claims,console,cross-site,identity,sign-in}',
  'database/*',
  'embeddings/embeddings',
  'files/{downloads,files,quota,sweep}',
  'http/{errors,never-500.property,routes,rpc}',
  // Rate limits are omitted: on PostgreSQL they use the database clock, which tests cannot set (see
  // test/cluster/replicas-limits.test.ts).
  'identity/{former-secrets,keys,keys-at-rest,managed-keys}',
  'models/{models,policy}',
  'responses/agents',
  'telemetry/health',
  'tools/agents',
  'usage/{budgets,embeddings,usage}',
]

/** The tests of the project `api-postgres`: API tests, and tests of rows in other projects. */
export const onPostgres = [
  ...api.map((name) => `test/api/${name}.test.ts`),
  'test/process/{uploads-s3,usage-budgets}.test.ts',
  'test/programs/jobs-{conversion,refused}.test.ts',
]
