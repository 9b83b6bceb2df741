/** Calls the tRPC API, with the published client or with raw requests. */
import { type Client, createClient } from '../../client/rpc/index.ts'
import { listOperations } from '../../src/server/api.ts'
import type { Answer, CallOptions, TestApp } from './app.ts'

/** Creates a tRPC client with a key or with headers. */
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

/** Sends one raw call; an error is in `body.error.json` of the response. */
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
