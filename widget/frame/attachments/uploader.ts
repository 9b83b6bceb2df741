/** Uploads files that are too large for a message, and continues after a pause, a lost connection or a reload. */
import { DetailedError, Upload } from 'tus-js-client'
import type { CreateUploadResult } from '../../../src/visitors/schema.ts'
import { isRecord, newId } from '../../values.ts'
import { toChatFailure } from '../failure.ts'
import { createBrowserStorage } from '../history/browser-storage.ts'
import type { Attachment } from './attachments.ts'
import { nameOf } from './read-file.ts'

export interface Transfer {
  readonly id: string
  readonly name: string
  /** From 0 to 1. */
  readonly share: number
  /**
   * `interrupted` after a lost connection; `failed` if the server does not accept the file now; `limited` if
   * the visitor has uploaded too many files.
   */
  readonly state: 'uploading' | 'paused' | 'interrupted' | 'failed' | 'limited'
}

export interface UploaderParts {
  /** @throws ChatFailure */
  readonly create: (filename: string, bytes: number) => Promise<CreateUploadResult>
  /** Identifies the visitor, who alone can continue an upload. */
  readonly readVisitor: () => string | undefined
  readonly onChange: (transfers: readonly Transfer[]) => void
  readonly onDone: (attachment: Attachment) => void
}

/** An upload that the server has reserved, and its URL once it has started. */
type Reserved = Pick<CreateUploadResult, 'id' | 'token' | 'expires_at' | 'upload_url'> & {
  readonly url?: string
}

interface Entry {
  readonly file: File
  transfer: Transfer
  reserved: Reserved | undefined
  upload: Upload | undefined
}

const retryDelaysMs = [0, 500, 1_000, 3_000, 5_000]
/** An upload that is about to expire is not continued after a reload. */
const MARGIN_SECONDS = 60

const storage = createBrowserStorage('parley-upload ')

export class Uploader {
  private readonly parts: UploaderParts
  private entries: readonly Entry[] = []
  /** The complete uploads by their ids on the server. */
  private readonly complete = new Map<string, Upload | undefined>()

  constructor(parts: UploaderParts) {
    this.parts = parts
    window.addEventListener('online', () => {
      for (const { transfer } of this.entries) if (transfer.state === 'interrupted') this.resume(transfer.id)
    })
  }

  add(file: File): void {
    const transfer = { id: newId(), name: nameOf(file), share: 0, state: 'uploading' } as const
    const entry: Entry = { file, transfer, reserved: undefined, upload: undefined }
    this.entries = [...this.entries, entry]
    void this.start(entry)
  }

  pause(id: string): void {
    const entry = this.find(id)
    if (entry === undefined) return
    void entry.upload?.abort()
    this.change(entry, { state: 'paused' })
  }

  /** Continues at the offset that the server has stored. */
  resume(id: string): void {
    const entry = this.find(id)
    if (entry !== undefined) void this.start(entry)
  }

  /** Stops the upload, and deletes what the server has stored. */
  remove(id: string): void {
    const entry = this.find(id)
    if (entry === undefined) return
    this.forget(entry)
    // The server deletes an upload that is in no message after a day.
    entry.upload?.abort(true).catch(() => {})
  }

  /** Deletes a complete upload that the visitor does not send. */
  discard(uploadId: string): void {
    this.complete
      .get(uploadId)
      ?.abort(true)
      .catch(() => {})
    this.complete.delete(uploadId)
  }

  private find(id: string): Entry | undefined {
    return this.entries.find(({ transfer }) => transfer.id === id)
  }

  private forget(entry: Entry): void {
    this.entries = this.entries.filter((one) => one !== entry)
    this.save(entry, undefined)
    this.report()
  }

  private change(entry: Entry, change: Partial<Transfer>): void {
    entry.transfer = { ...entry.transfer, ...change }
    this.report()
  }

  private report(): void {
    this.parts.onChange(this.entries.map(({ transfer }) => transfer))
  }

  private async start(entry: Entry): Promise<void> {
    this.change(entry, { state: 'uploading' })
    if (entry.upload !== undefined) return entry.upload.start()
    try {
      entry.reserved ??= this.readSaved(entry) ?? (await this.reserve(entry))
    } catch (thrown) {
      const { code } = toChatFailure(thrown).failure
      const isLost = code === 'offline' || code === 'unreachable' || code === 'interrupted'
      this.change(entry, { state: isLost ? 'interrupted' : code === 'rate_limited' ? 'limited' : 'failed' })
      return
    }
    // The visitor may have paused or removed the file before the response.
    if (!this.entries.includes(entry)) return
    entry.upload = this.createUpload(entry, entry.reserved)
    if (entry.transfer.state === 'uploading') entry.upload.start()
  }

  private async reserve({ file }: Entry): Promise<Reserved> {
    return this.parts.create(nameOf(file), file.size)
  }

  private createUpload(entry: Entry, reserved: Reserved): Upload {
    const { file } = entry
    const { id, token, upload_url: endpoint, url } = reserved
    return new Upload(file, {
      endpoint,
      ...(url !== undefined && { uploadUrl: url }),
      headers: { Authorization: `Bearer ${token}` },
      metadata: { filename: nameOf(file) },
      retryDelays: retryDelaysMs,
      storeFingerprintForResuming: false,
      onUploadUrlAvailable: () => {
        const { upload } = entry
        if (upload?.url) this.save(entry, { ...reserved, url: upload.url })
      },
      onProgress: (sent, total) => this.change(entry, { share: total === 0 ? 1 : sent / total }),
      onSuccess: () => {
        this.forget(entry)
        this.complete.set(id, entry.upload)
        this.parts.onDone({ id: newId(), type: 'file', name: nameOf(file), upload: id })
      },
      onError: (error) => this.onError(entry, error),
    })
  }

  private onError(entry: Entry, error: Error): void {
    const status = error instanceof DetailedError ? error.originalResponse?.getStatus() : undefined
    if (status === undefined || status === 0 || status >= 500) {
      this.change(entry, { state: 'interrupted' })
      return
    }
    // The next attempt starts again, because the token or the upload is no longer valid.
    entry.upload = undefined
    entry.reserved = undefined
    this.save(entry, undefined)
    this.change(entry, { state: 'failed', share: 0 })
  }

  /** A file that the visitor chooses again after a reload has the same name, size and date. */
  private save({ file }: Entry, reserved: Reserved | undefined): void {
    const visitor = this.parts.readVisitor()
    if (visitor === undefined) return
    const text = reserved === undefined ? undefined : JSON.stringify(reserved)
    storage.write(storageName(visitor, file), text)
  }

  private readSaved({ file }: Entry): Reserved | undefined {
    const now = Date.now() / 1000
    storage.removeAll((_, text) => (parseReserved(text)?.expires_at ?? 0) < now + MARGIN_SECONDS)
    const visitor = this.parts.readVisitor()
    return visitor === undefined ? undefined : parseReserved(storage.read(storageName(visitor, file)))
  }
}

function storageName(visitor: string, { name, size, lastModified }: File): string {
  return storage.nameOf({ server: visitor, user: JSON.stringify([name, size, lastModified]) })
}

function parseReserved(text: string): Reserved | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!isRecord(value)) return undefined
    const { id, token, expires_at, upload_url, url } = value
    if (typeof id !== 'string' || typeof token !== 'string' || typeof url !== 'string') return undefined
    if (typeof expires_at !== 'number' || typeof upload_url !== 'string') return undefined
    return { id, token, expires_at, upload_url, url }
  } catch {
    return undefined
  }
}
