/** Uploads with tus-js-client. */
import type { Readable } from 'node:stream'
import {
  type DetailedError,
  type PreviousUpload,
  Upload,
  type UploadOptions,
  type UrlStorage,
} from 'tus-js-client'

export interface Destination {
  readonly url: string
  readonly key: string
}

export interface ClientUpload {
  readonly upload: Upload
  /** Resolves when the upload is complete; rejects when the client stops retrying. */
  readonly done: Promise<void>
}

/** Prepares an upload with short delays between retries. */
export function createClientUpload(
  source: Buffer | Readable,
  { url, key }: Destination,
  options: UploadOptions = {},
): ClientUpload {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const upload = new Upload(source as Buffer, {
    endpoint: `${url}/upload`,
    headers: { Authorization: `Bearer ${key}` },
    metadata: { filename: 'clip.mp4' },
    retryDelays: Array.from({ length: 20 }, (_, index) => index * 10),
    ...options,
    onSuccess: () => resolve(),
    onError: reject,
  })
  return { upload, done }
}

/** Returns the status and the text of the response that made the client stop retrying. */
export function readUploadError(error: unknown): { status: number | undefined; text: string | undefined } {
  const { originalResponse } = error as DetailedError
  return { status: originalResponse?.getStatus(), text: originalResponse?.getBody() }
}

/** Creates an in-memory replacement for the URL storage that the client uses in a browser. */
export function createUrlStorage(): UrlStorage {
  const kept = new Map<string, { readonly fingerprint: string; readonly upload: PreviousUpload }>()
  const list = (fingerprint?: string) =>
    [...kept]
      .filter(([, entry]) => fingerprint === undefined || entry.fingerprint === fingerprint)
      .map(([urlStorageKey, { upload }]) => ({ ...upload, urlStorageKey }))
  return {
    findAllUploads: async () => list(),
    findUploadsByFingerprint: async (fingerprint) => list(fingerprint),
    removeUpload: async (urlStorageKey) => void kept.delete(urlStorageKey),
    async addUpload(fingerprint, upload) {
      const urlStorageKey = `upload-${kept.size}`
      kept.set(urlStorageKey, { fingerprint, upload })
      return urlStorageKey
    },
  }
}
