/** How the document tells who may call an operation. */
import type { CallerKind } from '../keys/schema.ts'
import { isAboutArtifacts } from './errors.ts'
import { isOpenToOrigins } from './headers.ts'
import type { RestOperation } from './routes.ts'

const securityOf: Readonly<Record<CallerKind, string>> = {
  parent: 'parentKey',
  agent: 'agentKey',
  token: 'artifactToken',
}

export const securitySchemes = {
  parentKey: { type: 'http', scheme: 'bearer', description: 'A parent key (`svc_…`): for servers only.' },
  agentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An agent key (`agnt_key-…`): may stand in a page.',
  },
  artifactToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token of `POST /v1/artifacts`: for one artifact and those that belong to it, to upload or to view.',
  },
  artifactTokenInAddress: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'The same, in the address of what is only read.',
  },
  forwardedIdentity: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Email',
    description:
      'Set by a proxy that the operator trusts (`PARLEY_TRUST_FORWARDED_AUTH`), never by a client. A call that changes something also needs `X-Requested-With`, an `Origin` of this service or `Sec-Fetch-Site: same-origin`, and a body in JSON.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'parley_session',
    description:
      'Set by `POST /v1/manager/sign-in` where no proxy signs people in (`__Host-parley_session` on encrypted pages). What a call that changes something needs besides is the same.',
  },
} as const

/** Where somebody who is signed in needs no key. */
function isForUsers(path: string): boolean {
  return isAboutArtifacts(path) || !isOpenToOrigins(path)
}

/** Any one of these is enough. */
export function renderSecurity({ http, wire }: RestOperation): Record<string, string[]>[] {
  const keys = wire.needs === undefined ? wire.callers.map((caller) => securityOf[caller]) : []
  const inAddress = wire.callers.includes('token') && http.method === 'GET' ? ['artifactTokenInAddress'] : []
  const users = isForUsers(http.path) && wire.callers.length > 0 ? ['forwardedIdentity', 'session'] : []
  return [...keys, ...inAddress, ...users].map((scheme) => ({ [scheme]: [] }))
}

/** What a 403 means there; nothing where there is none. */
export function renderPermission({ http, wire }: RestOperation): Record<number, string> {
  if (wire.needs === 'user') return { 403: 'A key was sent, or another site makes the call.' }
  if (wire.needs === 'administrator') return { 403: 'The caller is no administrator.' }
  if (wire.callers.includes('token'))
    return { 403: 'The token is for something else, or the key of the wrong kind.' }
  if (wire.errors === 'openai' && wire.callers.length === 1) return { 403: 'The key is of the wrong kind.' }
  return isOpenToOrigins(http.path) || http.method === 'GET' ? {} : { 403: 'Another site makes the call.' }
}
