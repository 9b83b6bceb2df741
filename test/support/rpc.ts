/** Speaks to the typed door: with the client an application would use, and by hand where that would refuse. */
import { type Client, createClient } from '../../client/rpc/index.ts'
import { listOperations } from '../../src/server/api.ts'
import type { Answer, CallOptions, TestApp } from './app.ts'

/** The typed client. It presents a key, or whatever headers it is given. */
export function createTypedClient(
  app: TestApp,
  credential: string | Readonly<Record<string, string>> = app.key,
): Client {
  const { url } = app
  return createClient(
    typeof credential === 'string' ? { url, key: credential } : { url, headers: credential },
  )
}

const kinds = new Map(listOperations().map(({ name, operation }) => [name, operation.kind]))

/** One call as it looks on the wire; `answer.body.error.json` tells of its failure. */
export function callProcedure(
  app: TestApp,
  name: string,
  input: unknown = {},
  options: Omit<CallOptions, 'body'> = {},
): Promise<Answer> {
  if (kinds.get(name) !== 'query')
    return app.call('POST', `/trpc/${name}`, { ...options, body: { json: input } })
  const query = encodeURIComponent(JSON.stringify({ json: input }))
  return app.call('GET', `/trpc/${name}?input=${query}`, options)
}
