/** Lists the tests that run on PostgreSQL as well as on SQLite: those of modules that keep rows. */

const api = [
  'admin/*',
  'agents/*',
  'artifacts/{access,list,page,serving,status,jobs-hook,uploads-*}',
  'chat/{agent-*,breaker,concurrent-streams,failures,fallbacks,interruptions,models,rpc,stream}',
  'console/{claimed-data,claims,console,cross-site,identity,sign-in}',
  'database/*',
  'embeddings/embeddings',
  'files/{downloads,files,quota,sweep}',
  'http/{errors,never-500.property,routes,rpc}',
  // Rate limits are left out: on PostgreSQL they use its clock, which a test cannot set (see test/cluster/replicas-limits.test.ts).
  'identity/{former-secrets,keys,keys-at-rest}',
  'models/{models,policy}',
  'responses/agents',
  'telemetry/health',
  'tools/agents',
  'usage/{budgets,embeddings,usage}',
]

/** The API tests of the project `api-postgres`. */
export const apiOnPostgres = api.map((name) => `test/api/${name}.test.ts`)

/** The tests of conversion jobs, which need ffmpeg, of the project `programs-postgres`. */
export const programsOnPostgres = ['test/programs/jobs-{conversion,refused}.test.ts']
