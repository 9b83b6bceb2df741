/** Sends tus requests and reads the resulting artifacts. */
import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { MARK } from '../../src/storage/mark.ts'
import type { Answer, TestApp } from './app.ts'
import { eventually } from './process.ts'

export type Headers = Readonly<Record<string, string>>

/** A service in this or another process, with the key to use. */
export type Target = Pick<TestApp, 'url' | 'key' | 'fetch'>

export const BODY_TYPE = 'application/offset+octet-stream'
export const tus = { 'Tus-Resumable': '1.0.0' } as const

/** Renders the value of an Upload-Metadata header. */
export function toMetadata(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key} ${Buffer.from(value).toString('base64')}`)
    .join(',')
}

/** Returns the value of the metadata `checksum` for these bytes. */
export const checksumOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** Sends a request with the tus version and the key. */
export async function callUpload(
  target: Target,
  method: string,
  path: string,
  headers: Headers = {},
  body?: Buffer | ReadableStream,
): Promise<Answer> {
  const response = await target.fetch(target.url + path, {
    method,
    headers: { ...tus, Authorization: `Bearer ${target.key}`, ...headers },
    ...(body === undefined ? {} : { body, duplex: 'half' }),
  } as RequestInit)
  const text = await response.text()
  const body_ = text.startsWith('{') ? JSON.parse(text) : null
  return { status: response.status, headers: response.headers, text, body: body_ }
}

/** Options for a new upload; its default file name is `clip.mp4`. */
export interface Creation {
  readonly size?: number | 'deferred'
  readonly metadata?: Readonly<Record<string, string>>
  readonly headers?: Headers
  readonly body?: Buffer | ReadableStream
}

export function postUpload(target: Target, creation: Creation = {}): Promise<Answer> {
  const { size = 10, metadata, headers, body } = creation
  const length: Headers =
    size === 'deferred' ? { 'Upload-Defer-Length': '1' } : { 'Upload-Length': String(size) }
  const all: Headers = {
    ...length,
    'Upload-Metadata': toMetadata({ filename: 'clip.mp4', ...metadata }),
    ...(body === undefined ? {} : { 'Content-Type': BODY_TYPE }),
    ...headers,
  }
  return callUpload(target, 'POST', '/upload', all, body)
}

export interface CreatedUpload {
  readonly location: string
  readonly id: string
}

export async function createUpload(target: Target, creation: Creation = {}): Promise<CreatedUpload> {
  const { status, headers, text } = await postUpload(target, creation)
  if (status !== 201) throw new Error(`the upload was not created: ${status} ${text}`)
  return { location: headers.get('location') as string, id: headers.get('x-artifact-id') as string }
}

export function patchUpload(
  target: Target,
  { location }: Pick<CreatedUpload, 'location'>,
  offset: number,
  body: Buffer | ReadableStream,
  headers: Headers = {},
): Promise<Answer> {
  const all = { 'Content-Type': BODY_TYPE, 'Upload-Offset': String(offset), ...headers }
  return callUpload(target, 'PATCH', location, all, body)
}

export function headUpload(target: Target, { location }: Pick<CreatedUpload, 'location'>): Promise<Answer> {
  return callUpload(target, 'HEAD', location)
}

/** Returns the offset from which a client would resume. */
export async function readOffset(target: Target, begun: Pick<CreatedUpload, 'location'>): Promise<number> {
  const { status, headers } = await headUpload(target, begun)
  if (status !== 200) throw new Error(`HEAD of the upload returned ${status}`)
  return Number(headers.get('upload-offset'))
}

/** Returns the response body of `GET /artifacts/<id>/status`. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
export async function readStatus(target: Target, id: string): Promise<any> {
  const headers = { Authorization: `Bearer ${target.key}` }
  return (await target.fetch(`${target.url}/artifacts/${id}/status`, { headers })).json()
}

export async function waitForState(target: Target, id: string, state: string): Promise<void> {
  const found = await eventually(async () => (await readStatus(target, id)).state, state)
  if (found !== state) throw new Error(`the artifact is ${found}, not ${state}`)
}

/** Uploads in one request; resolves when the artifact is ready. */
export async function uploadWhole(
  target: Target,
  bytes: Buffer,
  creation: Creation = {},
): Promise<CreatedUpload> {
  const begun = await createUpload(target, { size: bytes.length, body: bytes, ...creation })
  await waitForState(target, begun.id, 'ready')
  return begun
}

/** Resumes and completes an upload, and checks that the artifact contains `bytes`. */
export async function finishUpload(
  target: Target,
  begun: Pick<CreatedUpload, 'location' | 'id'>,
  bytes: Buffer,
): Promise<void> {
  const offset = await readOffset(target, begun)
  const { status, text } = await patchUpload(target, begun, offset, bytes.subarray(offset))
  expect([status, text]).toEqual([204, ''])
  await waitForState(target, begun.id, 'ready')
  expect((await readArtifact(target, begun.id)).equals(bytes)).toBe(true)
}

/** Downloads a ready artifact. */
export async function readArtifact(target: Target, id: string): Promise<Buffer> {
  const headers = { Authorization: `Bearer ${target.key}` }
  const response = await target.fetch(`${target.url}/artifacts/${id}`, { headers })
  if (response.status !== 200) throw new Error(`the artifact cannot be read: ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

/** Lists the names of the complete and the resumable blobs in a data directory. */
export async function listArtifactBytes(dataDir: string): Promise<{ kept: string[]; growing: string[] }> {
  const root = join(dataDir, 'artifacts')
  const entries = await readdir(root, { withFileTypes: true })
  const isGrowing = entries.some(({ name }) => name === 'growing')
  return {
    kept: entries.filter((entry) => entry.isFile() && entry.name !== MARK).map(({ name }) => name),
    growing: isGrowing ? await readdir(join(root, 'growing')) : [],
  }
}

/** Asserts that a response has the headers that all tus responses must have. */
export function expectProtocol({ headers }: Answer): void {
  expect(headers.get('tus-resumable')).toBe('1.0.0')
  expect(headers.get('protocol-version')).toBe('2')
  expect(headers.get('cache-control')).toBe('no-store')
}
