/** How the document tells who may call an operation. */
import type { CallerKind } from '../keys/schema.ts'
import { isOpenToOrigins } from './headers.ts'
import type { RestOperation } from './routes.ts'

const securityOf: Readonly<Record<CallerKind, string>> = { parent: 'parentKey', agent: 'agentKey' }

export const securitySchemes = {
  parentKey: { type: 'http', scheme: 'bearer', description: 'A parent key (`svc_…`): for servers only.' },
  agentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An agent key (`agnt_key-…`): may stand in a page.',
  },
  forwardedIdentity: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Email',
    description:
      'Set by a proxy that the operator trusts (`PARLEY_TRUST_FORWARDED_AUTH`), never by a client. A call that changes something also needs `X-Requested-With`, an `Origin` of this service or `Sec-Fetch-Site: same-origin`, and a body in JSON.',
  },
} as const

/** Any one of these is enough. */
export function renderSecurity({ http, wire }: RestOperation): Record<string, string[]>[] {
  const keys = wire.needs === undefined ? wire.callers.map((caller) => securityOf[caller]) : []
  const users = isOpenToOrigins(http.path) ? [] : ['forwardedIdentity']
  return [...keys, ...users].map((scheme) => ({ [scheme]: [] }))
}

/** What a 403 means there; nothing where there is none. */
export function renderPermission({ http, wire }: RestOperation): Record<number, string> {
  if (wire.needs === 'user') return { 403: 'A key was sent, or another site makes the call.' }
  if (wire.needs === 'administrator') return { 403: 'The caller is no administrator.' }
  if (wire.errors === 'openai' && wire.callers.length === 1) return { 403: 'The key is of the wrong kind.' }
  return isOpenToOrigins(http.path) || http.method === 'GET' ? {} : { 403: 'Another site makes the call.' }
}
