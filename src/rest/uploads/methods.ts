/** What each method of the upload protocol does. Protocol: tus 1.0.0. Decision: 9. */

import type { ArtifactCaller } from '../../artifacts/access.ts'
import { appendBytes, type Progress } from '../../artifacts/append.ts'
import { removeUpload } from '../../artifacts/artifacts.ts'
import { parseMetadata } from '../../artifacts/metadata.ts'
import { createUpload, getUpload, type UploadRow } from '../../artifacts/uploads.ts'
import { actorOf } from '../../audit/actor.ts'
import { ServiceError } from '../../errors.ts'
import { withRequestLog } from '../../rpc/context.ts'
import type { HttpCall } from '../call.ts'
import { askForBody } from '../headers.ts'
import type { Dependencies } from './dependencies.ts'
import {
  assertBodyType,
  assertOffered,
  EXTENSIONS,
  expiryHeaders,
  PROTOCOL_VERSION,
  readBodyLength,
  readCount,
  readNewLength,
  readOffset,
} from './headers.ts'

export type UploadCall = HttpCall<ArtifactCaller, Dependencies>

/** "A successful response […] MUST contain the Tus-Version header. It MAY include the Tus-Extension and Tus-Max-Size headers." */
export function answerOptions(call: UploadCall): void {
  const { maxUploadBytes } = call.deps.config.limits
  const headers = ['Tus-Version', PROTOCOL_VERSION, 'Tus-Extension', EXTENSIONS]
  call.writePreflight([...headers, 'Tus-Max-Size', String(maxUploadBytes)])
}

/** Creates an upload, and takes in its first bytes where the request brings them. */
export async function answerPost(call: UploadCall): Promise<void> {
  const { deps, request, context } = call
  const { headers } = request
  const bodyBytes = readBodyLength(request)
  if (bodyBytes !== 0) assertBodyType(request)
  assertOffered(headers)
  const sizeBytes = readNewLength(headers)
  const header = textOf(headers['upload-metadata'])
  const metadata = parseMetadata(header)
  if (bodyBytes !== undefined && sizeBytes !== undefined && bodyBytes > sizeBytes)
    throw new ServiceError('too_large', `The body goes beyond the upload's length of ${sizeBytes} bytes.`)
  const row = await createUpload(deps, context.caller, { metadata, header, sizeBytes })
  deps.metrics.uploads.created.add()
  context.setHeader('X-Artifact-Id', row.id)
  const hasBytes = bodyBytes !== 0 || headers['content-type'] !== undefined
  // "Such an upload is immediately complete after its creation".
  const progress =
    hasBytes || sizeBytes === 0
      ? await appendFirst(call, row, bodyBytes)
      : { receivedBytes: 0, expiresAt: row.expires_at }
  const offset = hasBytes ? ['Upload-Offset', String(progress.receivedBytes)] : []
  call.writeEmpty(201, ['Location', locationOf(row), ...offset, ...expiryHeaders(progress.expiresAt)])
}

/** What is done with the bytes is done after the request that brings the last of them. */
function linkJobs(
  { tracing }: UploadCall['deps'],
  { arrival }: UploadCall['context'],
  { blob }: UploadRow,
): void {
  if (arrival.watch.span !== undefined) tracing?.linkUpload(blob, arrival.watch.span)
}

/** The upload is there by now: whatever happens to its first bytes, the client is told where to go on. */
async function appendFirst(
  { deps, request, response, signal, context }: UploadCall,
  row: UploadRow,
  bodyBytes: number | undefined,
): Promise<Progress> {
  askForBody(request, response)
  linkJobs(deps, context, row)
  try {
    const part = { offset: 0, declaredBytes: undefined, bodyBytes }
    return await appendBytes(withRequestLog(context), row, part, request, signal)
  } catch (error) {
    const isGone = error instanceof ServiceError && error.reason === 'checksum_mismatch'
    if (!isGone) context.setHeader('Location', locationOf(row))
    throw error
  }
}

/** "The Location header […] MAY be absolute or relative": relative, so that nothing of the request's can be reflected. R8. */
function locationOf({ segment }: UploadRow): string {
  return `/upload/${segment}`
}

/** "The Server MUST always include the Upload-Offset header in the response for a HEAD request". */
export async function answerHead(call: UploadCall, segment: string): Promise<void> {
  const row = await getUpload(call.deps, call.context.caller, segment)
  const length =
    row.size_bytes === null ? ['Upload-Defer-Length', '1'] : ['Upload-Length', String(row.size_bytes)]
  const metadata = row.metadata === null ? [] : ['Upload-Metadata', row.metadata]
  const headers = ['Upload-Offset', String(row.received_bytes), ...length, ...metadata]
  call.writeEmpty(200, [...headers, ...expiryHeaders(row.expires_at), 'X-Artifact-Id', row.id])
}

/** Adds bytes at the offset the request names. */
export async function answerPatch(call: UploadCall, segment: string): Promise<void> {
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
  linkJobs(deps, context, row)
  const { receivedBytes, expiresAt } = await appendBytes(withRequestLog(context), row, part, request, signal)
  const headers = ['Upload-Offset', String(receivedBytes), ...expiryHeaders(expiresAt)]
  call.writeEmpty(204, [...headers, 'X-Artifact-Id', row.id])
}

/** "When receiving a DELETE request for an existing upload the Server SHOULD free associated resources". */
export async function answerDelete(call: UploadCall, segment: string): Promise<void> {
  const { deps, context } = call
  await removeUpload(
    withRequestLog(context),
    actorOf(context),
    await getUpload(deps, context.caller, segment),
  )
  call.writeEmpty(204, [])
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(',') : header
}
