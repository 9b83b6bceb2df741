/** The OpenAPI description of the tus endpoint, which has no operation records because its bodies are bytes. */
import { z } from 'zod'
import type { ZodOpenApiOperationObject } from 'zod-openapi'
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
  409: 'The id is taken, or the upload is at another offset.',
  412: 'Another version of the protocol; `Tus-Version` names ours.',
  413: 'The upload or the address is too large, or the key may not keep so much.',
  415: `A body is sent as ${BODY_TYPE}.`,
  422: 'The bytes do not have the checksum that was announced; the upload is gone.',
  423: 'Another request is writing into the upload.',
  429: 'Too many calls without a valid key; `Retry-After` says how long to wait.',
  500: 'Something went wrong on our side.',
  507: 'There is no room at the moment; the upload can be resumed later.',
}

function renderFailures(statuses: readonly number[]): ZodOpenApiOperationObject['responses'] {
  return Object.fromEntries(
    statuses.map((status) => [
      String(status),
      {
        description: failures[status] ?? '',
        ...(status === 429 ? { headers: retryAfter } : {}),
        content: { 'application/json': { schema: ArtifactError } },
      },
    ]),
  )
}

const common = [400, 401, 403, 412, 429, 500] as const
const segment = z.object({ segment: z.string().meta({ description: 'The last part of `Location`.' }) })
const security = ['parentKey', 'artifactToken', 'forwardedIdentity'].map((scheme) => ({ [scheme]: [] }))
const binary = { type: 'string', format: 'binary' } as const
const tags = ['Uploads']

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

const readOptions: ZodOpenApiOperationObject = {
  operationId: 'uploads-options',
  tags,
  summary: 'Read what of the protocol is offered',
  security: [],
  responses: {
    204: {
      description: 'Success',
      headers: {
        'Tus-Version': text('The versions of the protocol.'),
        'Tus-Extension': text('Its extensions that are offered.'),
        'Tus-Max-Size': text('Bytes of the largest upload.'),
      },
    },
    ...renderFailures([413]),
  },
}

export const uploadPaths: Record<string, Record<string, ZodOpenApiOperationObject>> = {
  '/upload': {
    options: readOptions,
    post: {
      operationId: 'uploads-create',
      tags,
      summary: 'Begin an upload, with its first bytes or without',
      security,
      requestParams: { header: creationHeaders },
      requestBody: { required: false, content: { [BODY_TYPE]: { schema: binary } } },
      responses: {
        201: {
          description: 'Success',
          headers: {
            ...always,
            Location: text('Where the upload goes on; relative.'),
            ...artifactId,
            ...offset,
            ...expiry,
          },
        },
        ...renderFailures([...common, 408, 409, 413, 415, 422, 507]),
      },
    },
  },
  '/upload/{segment}': {
    head: {
      operationId: 'uploads-read',
      tags,
      summary: 'Ask how far an upload has got',
      security,
      requestParams: { path: segment, header: z.object({ 'Tus-Resumable': version }) },
      responses: {
        200: {
          description: 'Success',
          headers: {
            ...always,
            ...offset,
            'Upload-Length': text('The length of the whole, once it is known.'),
            'Upload-Defer-Length': text('1 until then.'),
            'Upload-Metadata': text('As it was sent.'),
            ...artifactId,
            ...expiry,
          },
        },
        ...renderFailures([...common, 404]),
      },
    },
    patch: {
      operationId: 'uploads-append',
      tags,
      summary: 'Add bytes to an upload',
      security,
      requestParams: { path: segment, header: partHeaders },
      requestBody: { required: true, content: { [BODY_TYPE]: { schema: binary } } },
      responses: {
        204: { description: 'Success', headers: { ...always, ...offset, ...artifactId, ...expiry } },
        ...renderFailures([...common, 404, 408, 409, 413, 415, 422, 423, 507]),
      },
    },
    delete: {
      operationId: 'uploads-delete',
      tags,
      summary: 'Remove an upload, finished or not',
      security,
      requestParams: { path: segment, header: z.object({ 'Tus-Resumable': version }) },
      responses: { 204: { description: 'Success', headers: always }, ...renderFailures([...common, 404]) },
    },
  },
}
