/** The operations on files. Upload and download exist only in the REST API. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { operationsOf, withRequestLog } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { createFile, deleteFile, downloadFile, getFile, listFiles } from './files.ts'
import {
  FileDeleted,
  FileList,
  FileListQuery,
  FileObject,
  FileReference,
  FileUpload,
  renderFile,
  renderFileList,
} from './schema.ts'

const tag = 'Files'
const owner = { callers: ['parent'] } as const
const notFound = { 404: 'There is no such file.' }

const define = operationsOf<Dependencies>()

export const filesOperations = {
  create: define({
    kind: 'mutation',
    http: { method: 'POST', path: '/v1/files' },
    rpc: false,
    auth: owner,
    request: {
      upload: async ({ deps, caller }) => ({
        files: deps.fileBlobs,
        limit: await deps.quota.findSizeLimit(deps.db, caller.tenantId),
      }),
    },
    docs: {
      tag,
      summary: 'Upload a file',
      failures: {
        413: 'The file is too large, or the key may not keep so much (`storage_quota_exceeded`).',
        507: 'There is no room for more bytes.',
      },
    },
    input: FileUpload,
    output: FileObject,
    run: async ({ context: { deps, caller }, input }) =>
      renderFile(await createFile(deps, caller.tenantId, input)),
  }),

  list: define({
    kind: 'query',
    http: { method: 'GET', path: '/v1/files' },
    auth: owner,
    docs: { tag, summary: "List the calling key's files" },
    input: FileListQuery,
    output: FileList,
    run: async ({ context: { deps, caller }, input }) =>
      renderFileList(await listFiles(deps, caller.tenantId, input)),
  }),

  get: define({
    kind: 'query',
    http: { method: 'GET', path: '/v1/files/{file_id}' },
    auth: owner,
    docs: { tag, summary: 'Read what is known of a file', failures: notFound },
    input: FileReference,
    output: FileObject,
    run: async ({ context: { deps, caller }, input }) =>
      renderFile(await getFile(deps, caller.tenantId, input.file_id)),
  }),

  content: define({
    kind: 'query',
    http: { method: 'GET', path: '/v1/files/{file_id}/content' },
    rpc: false,
    auth: owner,
    response: { download: true },
    docs: {
      tag,
      summary: "Download a file's bytes",
      failures: { ...notFound, 416: 'The range lies behind the last byte.' },
    },
    input: FileReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => downloadFile(deps, caller.tenantId, input.file_id),
  }),

  delete: define({
    kind: 'mutation',
    http: { method: 'DELETE', path: '/v1/files/{file_id}' },
    auth: owner,
    docs: { tag, summary: 'Delete a file', failures: notFound },
    input: FileReference,
    output: FileDeleted,
    run: async ({ context, input }) => {
      await deleteFile(withRequestLog(context), actorOf(context), context.caller.tenantId, input.file_id)
      return { id: input.file_id, object: 'file' as const, deleted: true as const }
    },
  }),
}
