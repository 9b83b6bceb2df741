/** Serves the tus endpoint, which creates, resumes and deletes uploads (tus 1.0.0). */
import type { IncomingMessage } from 'node:http'
import { askForBody, assertShortTarget, hasNoBody, mediaTypeOf } from '../http/request.ts'
import { type AuditDeps, actorOf } from '../identity/audit.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Dependencies as RestDependencies } from '../operations/dependencies.ts'
import { type AuthPolicy, withRequestLog } from '../operations/operation.ts'
import type { Endpoint, HttpCall, Route } from '../operations/pipeline.ts'
import { type ArtifactCaller, assertRemovable } from './access.ts'
import { removeUpload } from './artifacts.ts'
import type { Dependencies as ArtifactDependencies } from './dependencies.ts'
import { parseMetadata } from './metadata.ts'
import type { UploadRow } from './store.ts'
import { appendBytes, type Progress } from './transfer/append.ts'
import { createUpload, getUpload } from './transfer/uploads.ts'

type Headers = IncomingMessage['headers']

type Dependencies = ArtifactDependencies & RestDependencies & AuditDeps

export const PROTOCOL_VERSION = '1.0.0'

/** The supported tus extensions; `checksum` and `concatenation` are not supported. */
export const uploadExtensions = [
  'creation',
  'creation-with-upload',
  'creation-defer-length',
  'termination',
  'expiration',
] as const

export const BODY_TYPE = 'application/offset+octet-stream'

function assertBodyType(request: Pick<IncomingMessage, 'headers'>): void {
  if (mediaTypeOf(request) !== BODY_TYPE)
    throw new ServiceError('unsupported_media_type', `Content-Type: must be ${BODY_TYPE}`)
  const { 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding.toLowerCase() !== 'identity')
    throw new ServiceError(
      'unsupported_media_type',
      `Content-Encoding: '${encoding}' is not supported; send the body unencoded`,
    )
}

/**
 * Rejects headers of unsupported tus extensions that would change the meaning of the body.
 * @throws ServiceError `invalid_value`
 */
function assertOffered(headers: Headers): void {
  for (const [name, extension] of notOffered) {
    if (headers[name] !== undefined)
      throw new ServiceError('invalid_value', `${name}: the tus extension ${extension} is not supported`)
  }
}

const notOffered = [
  ['upload-concat', 'concatenation'],
  ['upload-checksum', 'checksum'],
] as const

/**
 * Returns `Upload-Length`, or undefined for `Upload-Defer-Length: 1`.
 * @throws ServiceError `invalid_value` unless exactly one of these headers is sent.
 */
function readNewLength(headers: Headers): number | undefined {
  const deferred = headers['upload-defer-length']
  const length = readCount(headers, 'Upload-Length')
  if (deferred !== undefined && deferred !== '1')
    throw new ServiceError('invalid_value', 'Upload-Defer-Length: must be 1')
  if ((length === undefined) === (deferred === undefined))
    throw new ServiceError(
      'invalid_value',
      'Upload-Length: send either this header or Upload-Defer-Length, not both',
    )
  return length
}

function readOffset(headers: Headers): number {
  const offset = readCount(headers, 'Upload-Offset')
  if (offset === undefined) throw new ServiceError('invalid_value', 'Upload-Offset is required')
  return offset
}

function readCount(
  headers: Headers,
  name: 'Upload-Length' | 'Upload-Offset' | 'Content-Length',
): number | undefined {
  const text = headers[name.toLowerCase()]
  if (text === undefined) return undefined
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text))
    throw new ServiceError('invalid_value', `${name}: must be a whole number of bytes`)
  return Number(text)
}

function readBodyLength(request: Pick<IncomingMessage, 'headers'>): number | undefined {
  if (hasNoBody(request)) return 0
  return request.headers['transfer-encoding'] === undefined
    ? readCount(request.headers, 'Content-Length')
    : undefined
}

/** Renders `Upload-Expires`, which tus requires in PATCH responses. `expiresAt` is in Unix seconds. */
function expiryHeaders(expiresAt: number | null): string[] {
  return expiresAt === null ? [] : ['Upload-Expires', new Date(expiresAt * 1000).toUTCString()]
}

type UploadRoute = Route<ArtifactCaller, Dependencies>
type UploadRoutes = Readonly<Record<string, UploadRoute>>

const auth: AuthPolicy = { callers: ['parent', 'token'], isUncounted: true, implicitBodyType: BODY_TYPE }

function createRoute(
  name: string,
  pattern: string,
  answer: (call: UploadCall, segment: string) => Promise<void>,
): UploadRoute {
  const run = (call: UploadCall) => answer(call, call.params.segment ?? '')
  return { name, pattern, auth, check: assertVersion, run }
}

/** There is no GET route, because `/artifacts/{artifact_id}` serves the content. */
const creationRoutes: UploadRoutes = {
  POST: createRoute('uploads.create', '/upload', answerPost),
}
const uploadRoutes: UploadRoutes = {
  HEAD: createRoute('uploads.get', '/upload/{segment}', answerHead),
  PATCH: createRoute('uploads.append', '/upload/{segment}', answerPatch),
  DELETE: createRoute('uploads.delete', '/upload/{segment}', answerDelete),
}
const optionsRoute: UploadRoute = { auth: undefined, run: answerOptions }

export const uploadEndpoint: Endpoint<ArtifactCaller, Dependencies> = {
  find(call) {
    if (!/^\/upload(\/|$)/.test(call.path)) return undefined
    assertShortTarget(call.request)
    // tus requires this header in every response.
    call.context.setHeader('Tus-Resumable', PROTOCOL_VERSION)
    const { routes, segment } = findUploadPath(call.path)
    const method = methodOf(call)
    if (method === 'OPTIONS') return optionsRoute
    const route = Object.hasOwn(routes, method) ? routes[method] : undefined
    if (route === undefined) throw rejectMethod(method, routes)
    call.params = { segment }
    return route
  },
}

/** Accepts a trailing slash after `/upload`, which some clients add. */
function findUploadPath(path: string): { routes: UploadRoutes; segment: string } {
  const [, segment] = /^\/upload(?:\/([0-9A-Za-z]{0,64}))?$/.exec(path) ?? []
  if (segment) return { routes: uploadRoutes, segment }
  if (path === '/upload' || path === '/upload/') return { routes: creationRoutes, segment: '' }
  throw new ServiceError('not_found', `Path not found: ${path}`)
}

/** Returns the method in `X-HTTP-Method-Override`, which tus gives precedence over the actual method. */
function methodOf({ request }: UploadCall): string {
  const sent = request.headers['x-http-method-override']
  return typeof sent === 'string' ? sent.toUpperCase() : (request.method as string)
}

/**
 * Rejects unsupported protocol versions and lists the supported one in `Tus-Version`.
 * @throws ServiceError `precondition_failed`
 */
function assertVersion({ request, context }: UploadCall): void {
  const sent = request.headers['tus-resumable']
  if (sent === PROTOCOL_VERSION) return
  context.setHeader('Tus-Version', PROTOCOL_VERSION)
  const message = sent === undefined ? 'is required' : 'is not a supported protocol version'
  throw new ServiceError('precondition_failed', `Tus-Resumable: ${message}; send ${PROTOCOL_VERSION}.`)
}

function rejectMethod(name: string, routes: UploadRoutes): ServiceError {
  const allow = [...Object.keys(routes), 'OPTIONS']
  return new ServiceError(
    'method_not_allowed',
    `${name} is not allowed for this path; use ${allow.join(', ')}.`,
    {
      allow,
    },
  )
}

type UploadCall = HttpCall<ArtifactCaller, Dependencies>

function answerOptions(call: UploadCall): void {
  const { maxUploadBytes } = call.deps.config.limits
  const headers = ['Tus-Version', PROTOCOL_VERSION, 'Tus-Extension', uploadExtensions.join(',')]
  call.writePreflight([...headers, 'Tus-Max-Size', String(maxUploadBytes)])
}

async function answerPost(call: UploadCall): Promise<void> {
  const { deps, request, context } = call
  const { headers } = request
  const bodyBytes = readBodyLength(request)
  if (bodyBytes !== 0) assertBodyType(request)
  assertOffered(headers)
  const sizeBytes = readNewLength(headers)
  const header = textOf(headers['upload-metadata'])
  const metadata = parseMetadata(header)
  if (bodyBytes !== undefined && sizeBytes !== undefined && bodyBytes > sizeBytes)
    throw new ServiceError('too_large', `The body exceeds the upload length of ${sizeBytes} bytes.`)
  const { row, isRepeated } = await createUpload(deps, context.caller, { metadata, header, sizeBytes })
  context.setHeader('X-Artifact-Id', row.id)
  // Ignores the body of a repeated request, because the client can resume at the returned offset.
  if (isRepeated && sizeBytes !== 0) return answerRepeated(call, row)
  if (!isRepeated) deps.metrics.uploads.created.inc()
  const hasBytes = bodyBytes !== 0 || headers['content-type'] !== undefined
  // An empty upload is complete as soon as it is created (tus 1.0.0).
  const progress =
    hasBytes || sizeBytes === 0
      ? await appendFirst(call, row, bodyBytes)
      : { receivedBytes: 0, expiresAt: row.expires_at }
  const offset = hasBytes ? ['Upload-Offset', String(progress.receivedBytes)] : []
  call.writeEmpty(201, ['Location', locationOf(row), ...offset, ...expiryHeaders(progress.expiresAt)])
}

function answerRepeated(call: UploadCall, row: UploadRow): void {
  const headers = ['Location', locationOf(row), 'Upload-Offset', String(row.received_bytes)]
  call.writeEmpty(201, [...headers, ...expiryHeaders(row.expires_at)])
}

/** Links the upload's jobs to this request's trace, because this request may complete the upload. */
function linkJobs({ deps, context }: UploadCall, { blob }: UploadRow): void {
  const { span } = context.metadata.instrumentation
  if (span !== undefined) deps.tracing?.linkUpload(blob, span)
}

/**
 * Appends the body of the creation request. If that fails, still sends `Location`, so that the client can
 * resume, unless the upload was deleted.
 */
async function appendFirst(
  call: UploadCall,
  row: UploadRow,
  bodyBytes: number | undefined,
): Promise<Progress> {
  const { request, response, signal, context } = call
  askForBody(request, response)
  linkJobs(call, row)
  try {
    const part = { offset: 0, declaredBytes: undefined, bodyBytes }
    return await appendBytes(withRequestLog(context), row, part, request, signal)
  } catch (error) {
    const isGone = error instanceof ServiceError && error.reason === 'checksum_mismatch'
    if (!isGone) context.setHeader('Location', locationOf(row))
    throw error
  }
}

/** Returns a relative URL, which does not depend on the Host header. */
function locationOf({ segment }: UploadRow): string {
  return `/upload/${segment}`
}

async function answerHead(call: UploadCall, segment: string): Promise<void> {
  const row = await getUpload(call.deps, call.context.caller, segment)
  const length =
    row.size_bytes === null ? ['Upload-Defer-Length', '1'] : ['Upload-Length', String(row.size_bytes)]
  const metadata = row.metadata === null ? [] : ['Upload-Metadata', row.metadata]
  const headers = ['Upload-Offset', String(row.received_bytes), ...length, ...metadata]
  call.writeEmpty(200, [...headers, ...expiryHeaders(row.expires_at), 'X-Artifact-Id', row.id])
}

async function answerPatch(call: UploadCall, segment: string): Promise<void> {
  const { deps, request, response, signal, context } = call
  const row = await getUpload(deps, context.caller, segment)
  assertBodyType(request)
  assertOffered(request.headers)
  const part = {
    offset: readOffset(request.headers),
    declaredBytes: readCount(request.headers, 'Upload-Length'),
    bodyBytes: readBodyLength(request),
  }
  askForBody(request, response)
  linkJobs(call, row)
  const { receivedBytes, expiresAt } = await appendBytes(withRequestLog(context), row, part, request, signal)
  const headers = ['Upload-Offset', String(receivedBytes), ...expiryHeaders(expiresAt)]
  call.writeEmpty(204, [...headers, 'X-Artifact-Id', row.id])
}

async function answerDelete(call: UploadCall, segment: string): Promise<void> {
  const { deps, context } = call
  const row = await getUpload(deps, context.caller, segment)
  assertRemovable(context.caller, row)
  await removeUpload(withRequestLog(context), actorOf(context), row)
  call.writeEmpty(204, [])
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(',') : header
}
