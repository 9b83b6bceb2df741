/** Uploads files in resumable parts over tus 1.0.0; continues while the user visits other pages. */
import { DetailedError, defaultOptions, type PreviousUpload, Upload } from 'tus-js-client'
import { reportSessionEnd } from '../session.ts'
import { t } from '../strings/language.ts'
import { guessKind, type Kind } from './artifacts.ts'

export interface LocalUpload {
  readonly id: string
  readonly filename: string
  readonly sizeBytes: number
  readonly sentBytes: number
  readonly state: 'waiting' | 'running' | 'paused' | 'failed' | 'done'
  /** A failed upload's error message. */
  readonly problem?: string | undefined
}

/** A file's metadata. */
interface Description {
  /** Guessed from the file if absent. */
  readonly kind?: Kind | undefined
  readonly name?: string | undefined
}

const ENDPOINT = '/upload'
/** Maximum size of one request in bytes; limits how much is sent again if a proxy aborts a request. */
const PART_BYTES = 8 * 1024 * 1024
const MAX_AT_ONCE = 2
const retryDelays = [0, 1_000, 3_000, 5_000, 10_000, 20_000]
/** Headers of every request. They prevent CSRF, because a form on another site cannot send them. */
const headers = { 'X-Requested-With': 'parley' }

let uploads: readonly LocalUpload[] = []
const running = new Map<string, Upload>()
const listeners = new Set<() => void>()
let lastId = 0

export function listUploads(): readonly LocalUpload[] {
  return uploads
}

/** Calls `listener` after every change; returns a function that unsubscribes. */
export function onUploads(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Uploads the file, or resumes its upload if part of it was sent before. */
export async function addUpload(
  file: File,
  { kind = guessKind(file), name }: Description = {},
): Promise<void> {
  const id = `upload-${++lastId}`
  const upload = new Upload(file, {
    endpoint: ENDPOINT,
    headers,
    chunkSize: PART_BYTES,
    retryDelays,
    removeFingerprintOnSuccess: true,
    metadata: {
      filename: file.name,
      filetype: file.type,
      kind,
      ...(name === undefined || name === '' ? {} : { name }),
    },
    onProgress: (sentBytes) => change(id, { sentBytes }),
    onUploadUrlAvailable: publish,
    onSuccess: () => end(id, { state: 'done', sentBytes: file.size }),
    onError: (error) => {
      if (error instanceof DetailedError && error.originalResponse?.getStatus() === 401) reportSessionEnd()
      end(id, { state: 'failed', problem: toProblem(error) })
    },
  })
  running.set(id, upload)
  const { name: filename, size: sizeBytes } = file
  uploads = [...uploads, { id, filename, sizeBytes, sentBytes: 0, state: 'waiting' }]
  const [previous] = await upload.findPreviousUploads()
  if (previous !== undefined) upload.resumeFromPreviousUpload(previous)
  startNext()
}

export async function pauseUpload(id: string): Promise<void> {
  change(id, { state: 'paused' })
  await running.get(id)?.abort()
  startNext()
}

export function resumeUpload(id: string): void {
  change(id, { state: 'waiting', problem: undefined })
  startNext()
}

/** Cancels the upload and deletes the received bytes. */
export async function cancelUpload(id: string): Promise<void> {
  const upload = running.get(id)
  dismissUpload(id)
  startNext()
  await upload?.abort(true).catch(() => {})
  publish()
}

/** Removes the upload from the list without aborting it. */
export function dismissUpload(id: string): void {
  running.delete(id)
  uploads = uploads.filter((one) => one.id !== id)
  publish()
}

/** An upload that this browser started before the page loaded. */
export interface UnfinishedUpload {
  readonly filename: string
  readonly sizeBytes: number
  readonly sentBytes: number
  readonly stored: PreviousUpload
}

/** Lists the active key's unfinished uploads that this browser started and the server still has. */
export async function listUnfinished(): Promise<UnfinishedUpload[]> {
  const stored = await defaultOptions.urlStorage.findAllUploads()
  const found = await Promise.all(stored.map(readUnfinished))
  return found.filter((one) => one !== undefined)
}

async function readUnfinished(stored: PreviousUpload): Promise<UnfinishedUpload | undefined> {
  if (stored.uploadUrl === null || stored.size === null) return undefined
  const answer = await fetch(stored.uploadUrl, { method: 'HEAD', headers: { 'Tus-Resumable': '1.0.0' } })
  if (!answer.ok) return undefined
  const sentBytes = Number(answer.headers.get('upload-offset'))
  const filename = stored.metadata.filename ?? ''
  return sentBytes === stored.size ? undefined : { filename, sizeBytes: stored.size, sentBytes, stored }
}

/** Deletes the received bytes and the browser's record of the upload. */
export async function discardUnfinished({ stored }: UnfinishedUpload): Promise<void> {
  if (stored.uploadUrl !== null) await Upload.terminate(stored.uploadUrl, { headers, retryDelays: null })
  await defaultOptions.urlStorage.removeUpload(stored.urlStorageKey)
  publish()
}

function startNext(): void {
  const busy = uploads.filter(({ state }) => state === 'running').length
  const next = uploads.filter(({ state }) => state === 'waiting').slice(0, Math.max(MAX_AT_ONCE - busy, 0))
  for (const { id } of next) {
    change(id, { state: 'running' })
    running.get(id)?.start()
  }
  publish()
}

function end(id: string, values: Partial<LocalUpload>): void {
  change(id, values)
  startNext()
}

function change(id: string, values: Partial<LocalUpload>): void {
  uploads = uploads.map((one) => (one.id === id ? { ...one, ...values } : one))
  publish()
}

function publish(): void {
  for (const listener of listeners) listener()
}

/** Returns the server's error message if there is one. */
function toProblem(error: Error): string {
  if (!(error instanceof DetailedError) || error.originalResponse === null) return t('common.unreachable')
  try {
    const body: { error?: unknown } = JSON.parse(error.originalResponse.getBody())
    return typeof body.error === 'string' ? body.error : error.message
  } catch {
    return t('uploads.serverStatus', { status: error.originalResponse.getStatus() })
  }
}
