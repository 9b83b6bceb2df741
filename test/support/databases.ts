/** Lists the tests that run on both SQLite and PostgreSQL. */

const api = [
  'admin/*',
  'agents/*',
  'artifacts/{access,bin,console,endings,list,page,serving,status,jobs-events,jobs-hook,jobs-refused,uploads-*}',
  'budgets/{adjustments,agent-keys,api,budgets,defaults,degrade,degrade-policy,degrade-turns,events,grants,rounds,schedules.property,subjects,unpriced,usd,usd-reservations,visitors}',
  'chat/{agent-*,breaker,concurrent-streams,failures,fallbacks,interruptions,models,rpc,stream}',
  'console/{claimed-data,claims,console,cross-site,identity,sign-in}',
  'conversations/{activity,conversations,deletion,diagnostics,handover-calls,inline-data,log,log-export,main-line,ratings,responses,retention,search.property,tool-data,turn-control,turns,unstored}',
  'database/*',
  'embeddings/embeddings',
  'files/{downloads,files,quota,sweep}',
  'http/{errors,never-500.property,routes,rpc,sorted-lists}',
  // Omits the tests of rate limits, because tests cannot set PostgreSQL's clock; replicas-limits.test.ts
  // tests the limits on PostgreSQL.
  'identity/{former-secrets,key-states,keys,keys-at-rest,managed-keys}',
  'models/{models,policy,price-overrides,stored-providers}',
  'responses/agents',
  'stored-chat/*',
  'telemetry/health',
  'tools/agents',
  'usage/{calls,costs,embeddings,missing-prices,usage}',
  'visitors/*',
  'webhooks/*',
]

/** The test files of the project `api-postgres`. */
export const onPostgres = [
  ...api.map((name) => `test/api/${name}.test.ts`),
  'test/programs/jobs-{conversion,refused}.test.ts',
  'test/process/{budget-events,uploads-s3,usage-budgets,visitors-isolated}.test.ts',
]
