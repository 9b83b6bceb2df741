/** Makes the S3 calls for one bucket. */
import type { IncomingMessage } from 'node:http'
import type {
  CompletedPart,
  ListMultipartUploadsOutput,
  ListMultipartUploadsRequest,
  S3,
} from '@aws-sdk/client-s3'
import type { ByteRange } from '../../http/ranges.ts'
import { ignoreMissing, S3Failure, toS3Failure } from './failure.ts'

const NAMES_PER_PAGE = 1_000

export interface FoundObject {
  /** An unread stream; destroy it if you do not need it. */
  readonly body: IncomingMessage
  readonly sizeBytes: number
  readonly contentRange: string | undefined
}

interface ListedObject {
  readonly key: string
  /** Unix milliseconds when the object was put or its multipart upload began. */
  readonly begunAtMs: number
}

export interface UploadAddress {
  readonly key: string
  readonly uploadId: string
}

export interface UnfinishedUpload extends UploadAddress, ListedObject {}

export type SentPart = Required<Pick<CompletedPart, 'PartNumber' | 'ETag'>>

export class Bucket {
  private readonly name: string
  private readonly s3: S3

  constructor(name: string, s3: S3) {
    this.name = name
    this.s3 = s3
  }

  /** Rejects unless the bucket exists and the credentials grant access to it. */
  async probe(signal: AbortSignal): Promise<void> {
    await this.call(signal, (options) => this.s3.headBucket({ Bucket: this.name }, options))
  }

  async find(
    key: string,
    range: ByteRange | undefined,
    signal: AbortSignal,
  ): Promise<FoundObject | undefined> {
    const input = {
      ...this.at(key),
      ...(range !== undefined && { Range: `bytes=${range.start}-${range.end}` }),
    }
    const found = this.call(signal, (options) => this.s3.getObject(input, options))
    const output = await found.catch(ignoreMissing)
    if (output === undefined) return undefined
    const { Body, ContentLength: sizeBytes = 0, ContentRange: contentRange } = output
    return { body: Body as unknown as IncomingMessage, sizeBytes, contentRange }
  }

  async findSize(key: string, signal: AbortSignal): Promise<number | undefined> {
    const found = this.call(signal, (options) => this.s3.headObject(this.at(key), options))
    return (await found.catch(ignoreMissing))?.ContentLength
  }

  async put(key: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const input = { ...this.at(key), Body: bytes, ContentLength: bytes.length }
    await this.call(signal, (options) => this.s3.putObject(input, options))
  }

  /** Never replaces an existing object, except on servers without conditional writes. */
  async putNew(key: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const input = { ...this.at(key), Body: bytes, ContentLength: bytes.length }
    try {
      await this.call(signal, (options) => this.s3.putObject({ ...input, IfNoneMatch: '*' }, options))
    } catch (error) {
      if (!(error instanceof S3Failure)) throw error
      if (error.status === 501) return this.put(key, bytes, signal)
      if (error.status !== 409 && error.status !== 412) throw error
    }
  }

  async delete(key: string, signal: AbortSignal): Promise<void> {
    await this.call(signal, (options) => this.s3.deleteObject(this.at(key), options))
  }

  async *list(prefix: string, signal: AbortSignal): AsyncIterable<ListedObject> {
    let from: string | undefined
    do {
      const input = {
        Bucket: this.name,
        Prefix: prefix,
        MaxKeys: NAMES_PER_PAGE,
        ...(from !== undefined && { ContinuationToken: from }),
      }
      const page = await this.call(signal, (options) => this.s3.listObjectsV2(input, options))
      for (const { Key, LastModified } of page.Contents ?? [])
        if (Key !== undefined) yield { key: Key, begunAtMs: LastModified?.getTime() ?? 0 }
      from = page.IsTruncated ? page.NextContinuationToken : undefined
    } while (from !== undefined)
  }

  async beginUpload(key: string, signal: AbortSignal): Promise<string> {
    const { UploadId } = await this.call(signal, (options) =>
      this.s3.createMultipartUpload(this.at(key), options),
    )
    return UploadId as string
  }

  /** Part numbers start at 1. All parts except the last must be at least 5 MiB. */
  async sendPart(
    { key, uploadId }: UploadAddress,
    PartNumber: number,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<SentPart> {
    const part = { ...this.at(key), UploadId: uploadId, PartNumber }
    const input = { ...part, Body: bytes, ContentLength: bytes.length }
    const { ETag = '' } = await this.call(signal, (options) => this.s3.uploadPart(input, options))
    return { PartNumber, ETag }
  }

  async completeUpload(
    { key, uploadId }: UploadAddress,
    Parts: SentPart[],
    signal: AbortSignal,
  ): Promise<void> {
    const input = { ...this.at(key), UploadId: uploadId, MultipartUpload: { Parts } }
    await this.call(signal, (options) => this.s3.completeMultipartUpload(input, options))
  }

  async abortUpload({ key, uploadId }: UploadAddress, signal: AbortSignal): Promise<void> {
    const input = { ...this.at(key), UploadId: uploadId }
    await this.call(signal, (options) => this.s3.abortMultipartUpload(input, options)).catch(ignoreMissing)
  }

  async *listUnfinished(prefix: string, signal: AbortSignal): AsyncIterable<UnfinishedUpload> {
    let from: Partial<ListMultipartUploadsRequest> | undefined = {}
    const first = { Bucket: this.name, Prefix: prefix, MaxUploads: NAMES_PER_PAGE }
    do {
      const input: ListMultipartUploadsRequest = { ...first, ...from }
      const page: ListMultipartUploadsOutput = await this.call(signal, (options) =>
        this.s3.listMultipartUploads(input, options),
      )
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (Key === undefined || UploadId === undefined) continue
        yield { key: Key, uploadId: UploadId, begunAtMs: Initiated?.getTime() ?? 0 }
      }
      const { NextKeyMarker = '', NextUploadIdMarker = '' } = page
      from = page.IsTruncated ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker } : undefined
    } while (from !== undefined)
  }

  close(): void {
    this.s3.destroy()
  }

  private at(key: string) {
    return { Bucket: this.name, Key: key }
  }

  private async call<T>(
    signal: AbortSignal,
    send: (options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    try {
      return await send({ abortSignal: signal })
    } catch (error) {
      throw signal.aborted ? signal.reason : toS3Failure(error)
    }
  }
}
