/** Gathers an operation's input from a request: path, query, headers, and the body in its media type. */
import type { IncomingMessage } from 'node:http'
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import { largestBodyOf } from '../rpc/largest-body.ts'
import { decodeUtf8, hasNoBody, mediaTypeOf, parseJson, readBody } from './bodies.ts'
import type { RestOperation } from './routes.ts'

/** The most a JSON body may hold unless the operation says otherwise. Decision: 2. */
const MAX_JSON_BYTES = 1024 * 1024

/** The raw media types of an agent definition, and the format each is in. Decision: 6. */
export const definitionFormats: Readonly<Record<string, 'yaml' | 'markdown'>> = {
  'application/yaml': 'yaml',
  'text/yaml': 'yaml',
  'application/x-yaml': 'yaml',
  'text/markdown': 'markdown',
}

/**
 * The operation's input before validation. A body may not hold what belongs into the path or a header.
 * @throws ServiceError for a body that is too large, too slow, of another media type, or not what its type says.
 */
export async function gatherInput(
  request: IncomingMessage,
  operation: RestOperation,
  params: Readonly<Record<string, string>>,
  deps: Pick<Deps, 'config' | 'clock'>,
  caller: Caller | undefined,
): Promise<unknown> {
  const { http, wire } = operation
  const fields: Record<string, unknown> = { ...headerFields(request, wire.headers), ...params }
  if (http.method === 'GET' || http.method === 'DELETE') {
    return { ...queryFields(request, wire.integers), ...fields }
  }
  const body = await readInputBody(request, operation, deps, caller)
  if (!isRecord(body)) return body
  for (const field of wire.ignoredFields ?? []) delete body[field]
  for (const param of [...Object.keys(params), ...Object.values(wire.headers ?? {})]) {
    if (Object.hasOwn(body, param))
      throw new ServiceError('invalid_value', `${param}: is not a field of the body`, { param })
  }
  return Object.assign(body, fields)
}

async function readInputBody(
  request: IncomingMessage,
  operation: RestOperation,
  { config, clock }: Pick<Deps, 'config' | 'clock'>,
  caller: Caller | undefined,
): Promise<unknown> {
  const mediaType = mediaTypeOf(request)
  const format = operation.wire.body === 'definition' ? definitionFormats[mediaType] : undefined
  if (format === undefined && mediaType !== 'application/json') {
    if (mediaType === '' && hasNoBody(request)) return {}
    throw unsupportedMediaType(mediaType, operation)
  }
  const bytes = await readBody(
    request,
    {
      maxBytes: largestBodyOf(config, caller, operation.wire.maxBodyBytes?.(config) ?? MAX_JSON_BYTES),
      totalMs: config.timings.bodyMs,
      idleMs: config.timings.bodyIdleMs,
    },
    clock,
  )
  if (format !== undefined) return { yaml: decodeUtf8(bytes), format }
  return bytes.length === 0 ? {} : parseJson(bytes, operation.wire.maxJsonValues)
}

function isRecord(body: unknown): body is Record<string, unknown> {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}

function headerFields(
  request: IncomingMessage,
  names: Readonly<Record<string, string>> = {},
): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [header, field] of Object.entries(names)) {
    if (request.headers[header] !== undefined) fields[field] = request.headers[header]
  }
  return fields
}

/** Query values are strings; those of whole-number parameters become numbers where they are ones. */
function queryFields(request: IncomingMessage, integers: readonly string[] = []): Record<string, unknown> {
  const [, ...query] = (request.url ?? '').split('?')
  if (query.length === 0) return {}
  const fields: Record<string, unknown> = Object.fromEntries(new URLSearchParams(query.join('?')))
  for (const name of integers) {
    const value = fields[name]
    if (typeof value === 'string' && /^\d{1,15}$/.test(value)) fields[name] = Number(value)
  }
  return fields
}

function unsupportedMediaType(mediaType: string, { wire }: RestOperation): ServiceError {
  const accepted = ['application/json', ...(wire.body === 'definition' ? Object.keys(definitionFormats) : [])]
  const sent =
    mediaType === ''
      ? 'The Content-Type header is missing'
      : `Content-Type '${mediaType}' is not accepted here`
  return new ServiceError('unsupported_media_type', `${sent}; send ${accepted.join(', ')}.`)
}
