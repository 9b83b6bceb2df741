/** Describes the tus endpoint for the OpenAPI document; operations describe all other endpoints. */
import { z } from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi'
import { ArtifactError, protocolHeaders, retryAfter } from '../operations/openapi.ts'
import { BODY_TYPE, PROTOCOL_VERSION } from './tus.ts'

const byteCount = (description: string) => z.string().regex(/^\d+$/).meta({ description })
const text = (description: string) => ({ description, schema: { type: 'string' } }) as const
const version = z.literal(PROTOCOL_VERSION).meta({ description: 'tus protocol version.' })
const always = { ...protocolHeaders, 'Tus-Resumable': text('tus protocol version.') }
const offset = { 'Upload-Offset': text('Number of bytes that the server has stored.') }
const artifactId = { 'X-Artifact-Id': text('Artifact id, a UUID.') }
const expiry = { 'Upload-Expires': text('Time at which the server deletes the unfinished upload.') }

const failures: Readonly<Record<number, string>> = {
  400: 'A header is missing or invalid. For `Upload-Metadata`, the error names the invalid key.',
  401: 'The key or token is missing or invalid.',
  403: 'The token was issued for another purpose or artifact, or the key is of the wrong kind.',
  404: 'The upload does not exist, was deleted or has expired.',
  408: 'The client sent no data before the timeout. The upload can be resumed.',
  409: 'The id is already in use by another upload, or `Upload-Offset` is not the current offset.',
  412: 'Unsupported protocol version; `Tus-Version` lists the supported versions.',
  413: "The upload is too large, the URL is too long, or the upload would exceed the key's storage quota.",
  415: `The media type must be ${BODY_TYPE}.`,
  422: 'The received bytes do not match the checksum. The server has deleted the upload.',
  423: 'Another request is writing to the upload.',
  429: 'Too many requests without a valid key. Retry after the number of seconds in `Retry-After`.',
  500: 'Internal server error.',
  507: 'The storage is full. The upload can be resumed later.',
}

const common = [400, 401, 403, 412, 429, 500] as const
const segment = z.object({
  segment: z.string().meta({ description: 'The last path segment of `Location`.' }),
})
const security = ['parentKey', 'artifactToken', 'forwardedIdentity'].map((scheme) => ({ [scheme]: [] }))
const body = { [BODY_TYPE]: { schema: { type: 'string', format: 'binary' } } } as const

const creationHeaders = z.object({
  'Tus-Resumable': version,
  'Upload-Length': byteCount('Total size in bytes, unless deferred.').optional(),
  'Upload-Defer-Length': z
    .literal('1')
    .optional()
    .meta({ description: 'Set to 1 to send the total size later.' }),
  'Upload-Metadata': z.string().meta({
    description:
      'Comma-separated list of keys, each followed by a space and a Base64 value: `filename` (required), `artifactId`, `kind`, `relatedTo`, `name`, `filetype`, `checksum` (`sha256:` followed by 64 hexadecimal digits).',
  }),
})

const partHeaders = z.object({
  'Tus-Resumable': version,
  'Upload-Offset': byteCount('Current offset of the upload: the number of bytes received so far.'),
  'Upload-Length': byteCount('Total size in bytes, if it was deferred.').optional(),
})

function describe(
  operationId: string,
  summary: string,
  request: Pick<ZodOpenApiOperationObject, 'requestParams' | 'requestBody'>,
  [status, headers]: readonly [status: number, headers: NonNullable<ZodOpenApiResponseObject['headers']>],
  failing: readonly number[],
): ZodOpenApiOperationObject {
  const content = { 'application/json': { schema: ArtifactError } }
  const responses = failing.map((code) => {
    const limit = code === 429 ? { headers: retryAfter } : {}
    return [String(code), { description: failures[code] ?? '', ...limit, content }] as const
  })
  return {
    operationId,
    tags: ['Uploads'],
    summary,
    security,
    ...request,
    responses: { [`${status}`]: { description: 'Success', headers }, ...Object.fromEntries(responses) },
  }
}

const readOptions = describe(
  'uploads-options',
  'Get the supported tus versions and extensions',
  {},
  [
    204,
    {
      'Tus-Version': text('Supported tus protocol versions.'),
      'Tus-Extension': text('Supported tus extensions.'),
      'Tus-Max-Size': text('Maximum upload size in bytes.'),
    },
  ],
  [413],
)

const location = { Location: text('Relative URL of the upload.') }
const described = {
  'Upload-Length': text('Total size in bytes, once known.'),
  'Upload-Defer-Length': text('1 if the total size is not known yet.'),
  'Upload-Metadata': text('The metadata that the client sent.'),
}
const bySegment = { path: segment, header: z.object({ 'Tus-Resumable': version }) }

export const uploadPaths: Record<string, Record<string, ZodOpenApiOperationObject>> = {
  '/upload': {
    options: { ...readOptions, security: [] },
    post: describe(
      'uploads-create',
      'Create an upload, optionally with its first bytes',
      { requestParams: { header: creationHeaders }, requestBody: { required: false, content: body } },
      [201, { ...always, ...location, ...artifactId, ...offset, ...expiry }],
      [...common, 408, 409, 413, 415, 422, 507],
    ),
  },
  '/upload/{segment}': {
    head: describe(
      'uploads-read',
      "Get an upload's offset",
      { requestParams: bySegment },
      [200, { ...always, ...offset, ...described, ...artifactId, ...expiry }],
      [...common, 404],
    ),
    patch: describe(
      'uploads-append',
      'Append bytes to an upload',
      {
        requestParams: { path: segment, header: partHeaders },
        requestBody: { required: true, content: body },
      },
      [204, { ...always, ...offset, ...artifactId, ...expiry }],
      [...common, 404, 408, 409, 413, 415, 422, 423, 507],
    ),
    delete: describe(
      'uploads-delete',
      'Delete a finished or unfinished upload',
      { requestParams: bySegment },
      [204, always],
      [...common, 404],
    ),
  },
}
