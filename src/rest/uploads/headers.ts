/** The headers of the upload protocol: what each request must say, and what answers say. Protocol: tus 1.0.0. */
import type { IncomingMessage } from 'node:http'
import { uploadExtensions } from '../../artifacts/capabilities.ts'
import { ServiceError } from '../../errors.ts'
import { hasNoBody, mediaTypeOf } from '../bodies.ts'

export const PROTOCOL_VERSION = '1.0.0'

/** What of the protocol's extensions is offered. Decision: 9. */
export const EXTENSIONS = uploadExtensions.join(',')

/** "All PATCH requests MUST use Content-Type: application/offset+octet-stream". */
export const BODY_TYPE = 'application/offset+octet-stream'

type Headers = IncomingMessage['headers']

/**
 * "If the version specified by the Client is not supported by the Server, it MUST respond with the 412 Precondition Failed status and
 * MUST include the Tus-Version header into the response. In addition, the Server MUST NOT process the request."
 * @throws ServiceError `precondition_failed`
 */
export function assertVersion(headers: Headers): void {
  const sent = headers['tus-resumable']
  if (sent === PROTOCOL_VERSION) return
  const message = sent === undefined ? 'is missing' : 'names another version of the protocol'
  throw new ServiceError('precondition_failed', `Tus-Resumable: ${message}; this is ${PROTOCOL_VERSION}.`)
}

/** @throws ServiceError `unsupported_media_type` for a body that is not bytes of an upload. */
export function assertBodyType(request: Pick<IncomingMessage, 'headers'>): void {
  if (mediaTypeOf(request) !== BODY_TYPE)
    throw new ServiceError('unsupported_media_type', `Content-Type: must be ${BODY_TYPE}`)
  const { 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding.toLowerCase() !== 'identity')
    throw new ServiceError('unsupported_media_type', `Content-Encoding: '${encoding}' is not supported here`)
}

/** Extensions that change what bytes mean must not be passed over. @throws ServiceError `invalid_value` */
export function assertOffered(headers: Headers): void {
  for (const [name, extension] of notOffered) {
    if (headers[name] !== undefined)
      throw new ServiceError('invalid_value', `${name}: the extension ${extension} is not offered here`)
  }
}

const notOffered = [
  ['upload-concat', 'concatenation'],
  ['upload-checksum', 'checksum'],
] as const

/**
 * "The request MUST include one of the following headers: a) Upload-Length […] b) Upload-Defer-Length: 1". Undefined for the latter.
 * @throws ServiceError `invalid_value`
 */
export function readNewLength(headers: Headers): number | undefined {
  const deferred = headers['upload-defer-length']
  const length = readCount(headers, 'Upload-Length')
  if (deferred !== undefined && deferred !== '1')
    throw new ServiceError('invalid_value', 'Upload-Defer-Length: must be 1')
  if ((length === undefined) === (deferred === undefined))
    throw new ServiceError(
      'invalid_value',
      'Upload-Length: or Upload-Defer-Length must be sent, and not both',
    )
  return length
}

/** "The Upload-Offset request and response header indicates a byte offset […] The value MUST be a non-negative integer." */
export function readOffset(headers: Headers): number {
  const offset = readCount(headers, 'Upload-Offset')
  if (offset === undefined) throw new ServiceError('invalid_value', 'Upload-Offset: is required')
  return offset
}

/** A header that counts bytes; undefined where it was not sent. @throws ServiceError `invalid_value` */
export function readCount(
  headers: Headers,
  name: 'Upload-Length' | 'Upload-Offset' | 'Content-Length',
): number | undefined {
  const text = headers[name.toLowerCase()]
  if (text === undefined) return undefined
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text))
    throw new ServiceError('invalid_value', `${name}: must be a whole number of bytes`)
  return Number(text)
}

/** How many bytes follow the head; undefined when the client does not say. */
export function readBodyLength(request: Pick<IncomingMessage, 'headers'>): number | undefined {
  if (hasNoBody(request)) return 0
  return request.headers['transfer-encoding'] === undefined
    ? readCount(request.headers, 'Content-Length')
    : undefined
}

/** "This header MUST be included in every PATCH response if the upload is going to expire." `expiresAt`: Unix seconds. */
export function expiryHeaders(expiresAt: number | null): string[] {
  return expiresAt === null ? [] : ['Upload-Expires', new Date(expiresAt * 1000).toUTCString()]
}
