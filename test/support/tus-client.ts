/** Uploads with the official client, tus-js-client, to a service under test. */
import type { Readable } from 'node:stream'
import {
  type DetailedError,
  type PreviousUpload,
  Upload,
  type UploadOptions,
  type UrlStorage,
} from 'tus-js-client'

/** The service and the key for an upload. */
export interface Destination {
  readonly url: string
  readonly key: string
}

/** An upload and its completion. */
export interface ClientUpload {
  readonly upload: Upload
  /** Rejects when the client gives up. */
  readonly done: Promise<void>
}

/** Prepares an upload as a page would, with short delays between attempts. */
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

/** Returns the status and the text of the answer that made the client give up. */
export function readRefusal(error: unknown): { status: number | undefined; text: string | undefined } {
  const { originalResponse } = error as DetailedError
  return { status: originalResponse?.getStatus(), text: originalResponse?.getBody() }
}

/** Stores upload URLs in memory, as the client does in a browser's storage. */
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
