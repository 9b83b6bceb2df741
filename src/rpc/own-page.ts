/** Makes sure that a call which nobody signed with a key comes from a page of ours: another site's could make it too. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config.ts'
import type { Ambient } from '../console/identity.ts'
import { ServiceError } from '../errors.ts'
import { hasNoBody, mediaTypeOf } from '../rest/bodies.ts'
import type { Arrival } from './context.ts'

/**
 * Lets a call pass that changes nothing, or that carries a key, or that only a page of ours can make; a body has that media type, none
 * that a form could have. Security: 2.3. Decision: 10.
 * @throws ServiceError `insufficient_permissions`, `unsupported_media_type`.
 */
export function assertOwnPage(
  { ambient }: Arrival,
  { server }: Pick<Config, 'server'>,
  mediaType = 'application/json',
): void {
  if (ambient === undefined || changesNothing(ambient)) return
  const { headers } = ambient
  if (!isOwnOrigin(headers, server.publicUrl)) {
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
  if (!hasNoBody(ambient) && mediaTypeOf(ambient) !== mediaType) {
    throw new ServiceError('unsupported_media_type', `Without a key a body is sent as ${mediaType}.`)
  }
}

/** The upload protocol lets a header name another method than the request's own. */
function changesNothing({ method, headers }: Ambient): boolean {
  return (method === 'GET' || method === 'HEAD') && headers['x-http-method-override'] === undefined
}

function isOwnOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  if (headers['sec-fetch-site'] === 'same-origin') return true
  return publicUrl !== undefined && headers.origin === new URL(publicUrl).origin
}
