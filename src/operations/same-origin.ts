/** The same-origin check: rejects cross-site requests that a browser sends with implicit credentials (CSRF). */
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config/config.ts'
import { hasNoBody, type ImplicitCredentials, mediaTypeOf } from '../http/request.ts'
import { ServiceError } from '../lib/errors.ts'
import type { GuardedCall } from './dependencies.ts'
import type { RequestMetadata } from './operation.ts'

/** Step: accepts a request that changes nothing, that carries a key, or that only a page of this service can make. */
export function checkSameOrigin({ context, auth }: GuardedCall): void {
  if (auth !== undefined) assertSameOrigin(context.metadata, context.deps.config, auth.implicitBodyType)
}

/** The media type of a body must be one that a form cannot send. */
export function assertSameOrigin(
  { implicit }: RequestMetadata,
  { server, forwardedAuth }: Pick<Config, 'server' | 'forwardedAuth'>,
  mediaType = 'application/json',
): void {
  if (implicit === undefined || changesNothing(implicit)) return
  const { headers } = implicit
  // A browser sends a cookie only to the host that set it, so `Host` is trustworthy there. A proxy may forward any host.
  const isOwn = isOwnOrigin(headers, server.publicUrl) || (forwardedAuth === undefined && isOwnHost(headers))
  if (!isOwn) {
    throw new ServiceError(
      'insufficient_permissions',
      'Without a key this can only be called from a page of this service.',
    )
  }
  if (headers['x-requested-with'] === undefined) {
    throw new ServiceError(
      'insufficient_permissions',
      'Without a key this call needs the header `X-Requested-With`.',
    )
  }
  if (!hasNoBody(implicit) && mediaTypeOf(implicit) !== mediaType) {
    throw new ServiceError('unsupported_media_type', `Without a key a body is sent as ${mediaType}.`)
  }
}

/** In the upload protocol a header can name another method than the request's own. */
function changesNothing({ method, headers }: ImplicitCredentials): boolean {
  return (method === 'GET' || method === 'HEAD') && headers['x-http-method-override'] === undefined
}

function isOwnOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  if (headers['sec-fetch-site'] === 'same-origin') return true
  return publicUrl !== undefined && headers.origin === new URL(publicUrl).origin
}

/** Browsers send `Sec-Fetch-Site` to secure origins and to localhost only. */
function isOwnHost({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && host !== undefined && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host
}
