/** Speaks to the typed door: with the client an application would use, and by hand where that would refuse. */
import {
  createTRPCClient,
  httpBatchLink,
  httpBatchStreamLink,
  splitLink,
  type TRPCClient,
} from '@trpc/client'
import superjson from 'superjson'
import type { AppRouter } from '../../src/rpc/router.ts'
import { listOperations } from '../../src/rpc/router.ts'
import type { Answer, CallOptions, TestApp } from './app.ts'

/**
 * The typed client of the console and the widget: ordinary calls in batches, chat as a stream. It presents a key, or whatever headers
 * it is given.
 */
export function createTypedClient(
  app: TestApp,
  credential: string | Readonly<Record<string, string>> = app.key,
): TRPCClient<AppRouter> {
  const options = {
    url: `${app.url}/trpc`,
    transformer: superjson,
    headers: typeof credential === 'string' ? { Authorization: `Bearer ${credential}` } : credential,
  }
  return createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: ({ path }) => path === 'chat.stream',
        true: httpBatchStreamLink({ ...options, maxItems: 1 }),
        false: httpBatchLink(options),
      }),
    ],
  })
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
