/** The OpenAPI description of the tus endpoint, which has no operation records because its bodies are bytes. */
import { z } from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi'
import { ArtifactError, protocolHeaders, retryAfter } from '../operations/openapi.ts'
import { BODY_TYPE, PROTOCOL_VERSION } from './tus.ts'

const byteCount = (description: string) => z.string().regex(/^\d+$/).meta({ description })
const text = (description: string) => ({ description, schema: { type: 'string' } }) as const
const version = z.literal(PROTOCOL_VERSION).meta({ description: 'The version of the protocol.' })
const always = { ...protocolHeaders, 'Tus-Resumable': text('The version of the protocol.') }
const offset = { 'Upload-Offset': text('Bytes that have arrived for good.') }
const artifactId = { 'X-Artifact-Id': text('The artifact, a UUID.') }
const expiry = { 'Upload-Expires': text('While the upload is not finished: when it is removed.') }

const failures: Readonly<Record<number, string>> = {
  400: 'A header is missing or wrong; of `Upload-Metadata` the key at fault is named.',
  401: 'The key or token is missing or not valid.',
  403: 'The token is for something else, or the key of the wrong kind.',
  404: 'There is no such upload, or not any more.',
  408: 'No bytes arrived for too long; what came before can be gone on from.',
  409: 'The id is taken by another upload, or the upload is at another offset.',
  412: 'Another version of the protocol; `Tus-Version` names ours.',
  413: 'The upload or the address is too large, or the key may not keep so much.',
  415: `A body is sent as ${BODY_TYPE}.`,
  422: 'The bytes do not have the checksum that was announced; the upload is gone.',
  423: 'Another request is writing into the upload.',
  429: 'Too many calls without a valid key; `Retry-After` says how long to wait.',
  500: 'Something went wrong on our side.',
  507: 'There is no room at the moment; the upload can be resumed later.',
}

const common = [400, 401, 403, 412, 429, 500] as const
const segment = z.object({ segment: z.string().meta({ description: 'The last part of `Location`.' }) })
const security = ['parentKey', 'artifactToken', 'forwardedIdentity'].map((scheme) => ({ [scheme]: [] }))
const body = { [BODY_TYPE]: { schema: { type: 'string', format: 'binary' } } } as const

const creationHeaders = z.object({
  'Tus-Resumable': version,
  'Upload-Length': byteCount('The length of the whole, unless it is deferred.').optional(),
  'Upload-Defer-Length': z.literal('1').optional().meta({ description: 'The length is told later.' }),
  'Upload-Metadata': z.string().meta({
    description:
      'Pairs of a key and a value in Base64, separated by commas: `filename` (needed), `artifactId`, `kind`, `relatedTo`, `name`, `filetype`, `checksum` (`sha256:` and hexadecimal).',
  }),
})

const partHeaders = z.object({
  'Tus-Resumable': version,
  'Upload-Offset': byteCount('Where the bytes belong: how many have arrived.'),
  'Upload-Length': byteCount('The length of the whole, where it was deferred.').optional(),
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
  'Read what of the protocol is offered',
  {},
  [
    204,
    {
      'Tus-Version': text('The versions of the protocol.'),
      'Tus-Extension': text('Its extensions that are offered.'),
      'Tus-Max-Size': text('Bytes of the largest upload.'),
    },
  ],
  [413],
)

const location = { Location: text('Where the upload goes on; relative.') }
const described = {
  'Upload-Length': text('The length of the whole, once it is known.'),
  'Upload-Defer-Length': text('1 until then.'),
  'Upload-Metadata': text('As it was sent.'),
}
const bySegment = { path: segment, header: z.object({ 'Tus-Resumable': version }) }

export const uploadPaths: Record<string, Record<string, ZodOpenApiOperationObject>> = {
  '/upload': {
    options: { ...readOptions, security: [] },
    post: describe(
      'uploads-create',
      'Begin an upload, with its first bytes or without',
      { requestParams: { header: creationHeaders }, requestBody: { required: false, content: body } },
      [201, { ...always, ...location, ...artifactId, ...offset, ...expiry }],
      [...common, 408, 409, 413, 415, 422, 507],
    ),
  },
  '/upload/{segment}': {
    head: describe(
      'uploads-read',
      'Ask how far an upload has got',
      { requestParams: bySegment },
      [200, { ...always, ...offset, ...described, ...artifactId, ...expiry }],
      [...common, 404],
    ),
    patch: describe(
      'uploads-append',
      'Add bytes to an upload',
      {
        requestParams: { path: segment, header: partHeaders },
        requestBody: { required: true, content: body },
      },
      [204, { ...always, ...offset, ...artifactId, ...expiry }],
      [...common, 404, 408, 409, 413, 415, 422, 423, 507],
    ),
    delete: describe(
      'uploads-delete',
      'Remove an upload, finished or not',
      { requestParams: bySegment },
      [204, always],
      [...common, 404],
    ),
  },
}
