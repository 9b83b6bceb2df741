/**
 * Defines the `conversations`, `attachments`, `disclaimer` and `imageHosts` parts of the agent definition.
 */
import { z } from 'zod'
import { orMissing, Text } from '../lib/formats/json-schema.ts'
import { listOf, mappingOf, strictMapping } from '../lib/formats/mapping-schema.ts'
import { AgentUploads, listUploadExtensions } from './attachments/uploads.ts'

export { type AgentUploads, acceptsUpload, extensionOf, listUploadExtensions } from './attachments/uploads.ts'

const MAX_DAYS = 3650

/** If `fewestDays` is 0, the minimum is one second. */
const duration = (fewestDays: number, mostDays = MAX_DAYS) =>
  z
    .string({ error: 'must be a duration such as 30d' })
    .regex(/^[1-9]\d{0,4}[smhd]$/, 'must be a duration: a number followed by s, m, h or d, such as 30d')
    .refine(
      (text) => {
        const seconds = toSeconds(text)
        return seconds >= fewestDays * DAY_SECONDS && seconds <= mostDays * DAY_SECONDS
      },
      fewestDays === 0 ? `must be at most ${mostDays} days` : `must be ${fewestDays} to ${mostDays} days`,
    )

const permission = () => z.boolean({ error: 'must be true or false' }).default(true)

const MAX_NOTICE = 500
const MAX_URL = 2048
const MAX_DISCLAIMER = 200

const VisitorRights = mappingOf(
  z.strictObject(
    {
      list: permission(),
      delete: permission(),
      rate: permission(),
      /** The widget continues a conversation only within this time after its last activity. */
      resume: duration(0).default('24h'),
    },
    { error: strictMapping },
  ),
)

/**
 * The widget's notice about storage; if absent, the widget shows a default notice with the storage period.
 */
const Notice = mappingOf(
  z.strictObject(
    {
      text: z
        .string({ error: orMissing('must be text') })
        .min(1, 'must not be empty')
        .max(MAX_NOTICE, `must be at most ${MAX_NOTICE} characters`),
      url: z
        .string({ error: 'must be a URL' })
        .max(MAX_URL, `must be at most ${MAX_URL} characters`)
        .refine(isWebUrl, 'must be a URL that begins with https:// or http://')
        .optional(),
    },
    { error: strictMapping },
  ),
)

const MAX_HANDOVER_DAYS = 7
const MAX_UNAVAILABLE_TEXT = 500

/**
 * Rules for handovers to a person. Without them, visitors and the model cannot ask for a person, but an owner
 * can still take over a conversation.
 */
const Handover = mappingOf(
  z.strictObject(
    {
      /** Whether visitors may ask for a person. */
      button: permission(),
      /** Whether the model may ask for a person, with the tool `request_person`. */
      tool: permission(),
      /** The longest time to wait for a person's answer. */
      timeout: duration(0, MAX_HANDOVER_DAYS).default('10m'),
      /** Whether visitors see the name of the person who answers. */
      showName: permission(),
      /** The text for visitors if no person has answered. */
      whenNobody: z
        .string({ error: 'must be text' })
        .max(MAX_UNAVAILABLE_TEXT, `must be at most ${MAX_UNAVAILABLE_TEXT} characters`)
        .refine((text) => text.trim() !== '', 'must not be blank')
        .default('Nobody is available.'),
    },
    { error: strictMapping },
  ),
)

export type HandoverRules = z.output<typeof Handover>

/** The rules for agents without `handover`, and for conversations without an agent. */
export const defaultHandover: HandoverRules = { ...Handover.parse({}), button: false, tool: false }

const MAX_IMAGE_HOSTS = 20

/**
 * The hosts that the widget may load images from. Allows only characters that cannot end a directive of the
 * frame's Content Security Policy.
 */
export const ImageHosts = listOf(
  Text.regex(
    /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/i,
    'must be a host name such as images.example.org or *.example.org, without https://, a port or a path',
  ),
).max(MAX_IMAGE_HOSTS, `must have at most ${MAX_IMAGE_HOSTS} hosts`)

/** The line below the widget's input that says that the assistant can make mistakes; `false` hides it. */
export const Disclaimer = z.union(
  [
    z.boolean(),
    mappingOf(
      z.strictObject(
        {
          text: z
            .string({ error: 'must be text' })
            .min(1, 'must not be empty')
            .max(MAX_DISCLAIMER, `must be at most ${MAX_DISCLAIMER} characters`)
            .optional(),
          url: z
            .string({ error: 'must be a URL' })
            .max(MAX_URL, `must be at most ${MAX_URL} characters`)
            .refine(isWebUrl, 'must be a URL that begins with https:// or http://')
            .optional(),
        },
        { error: strictMapping },
      ),
    ),
  ],
  { error: 'must be `true`, `false`, or a mapping with `text` and `url`' },
)

/** The disclaimer in the format that the widget reads. */
export const DisclaimerView = z
  .strictObject({ text: z.string().nullable(), url: z.string().nullable() })
  .nullable()
  .meta({
    description:
      'Notice that the assistant can make mistakes, with a link to privacy information; null if the widget must not show it.',
  })

/** Returns the disclaimer for the widget; null hides it. The link defaults to the storage notice's link. */
export function renderDisclaimer(
  given: z.infer<typeof Disclaimer> | undefined,
  noticeUrl: string | undefined,
): z.output<typeof DisclaimerView> {
  if (given === false) return null
  const { text = null, url = noticeUrl ?? null } = typeof given === 'object' ? given : {}
  return { text, url }
}

function isWebUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

const DAY_SECONDS = 86_400
const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: DAY_SECONDS }

/** Converts a duration such as `30d` to seconds. */
export function toSeconds(duration: string): number {
  return Number(duration.slice(0, -1)) * (unitSeconds[duration.slice(-1)] as number)
}

/**
 * Rejects unknown keys, because a misspelled key could make the server store more than the author intends.
 */
export const AgentConversations = mappingOf(
  z.strictObject(
    {
      keep: duration(1),
      onDisconnect: z
        .enum(['cancel', 'continue'], { error: 'must be `cancel` or `continue`' })
        .default('cancel'),
      toolData: z.enum(['full', 'names'], { error: 'must be `full` or `names`' }).default('full'),
      history: mappingOf(
        z.strictObject(
          {
            turns: z
              .int({ error: 'must be a whole number' })
              .min(1, 'must be 1 to 200')
              .max(200, 'must be 1 to 200')
              .default(40),
            tokens: z
              .int({ error: 'must be a whole number' })
              .min(500, 'must be 500 to 1000000')
              .max(1_000_000, 'must be 500 to 1000000')
              .default(16_000),
          },
          { error: strictMapping },
        ),
      ).prefault({}),
      visitor: VisitorRights.prefault({}),
      notice: Notice.optional(),
      handover: Handover.optional(),
    },
    { error: strictMapping },
  ),
)

const MAX_ATTACHMENTS = 10
const MIN_ATTACHMENT_BYTES = 1024
const MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024
const bytesRange = `must be ${MIN_ATTACHMENT_BYTES} to ${MAX_ATTACHMENT_BYTES}`

export const AttachmentType = z.enum(['image', 'pdf', 'text'], { error: 'must be `image`, `pdf` or `text`' })
export type AttachmentType = z.infer<typeof AttachmentType>

/** The files that visitors may attach to a message (ADR 0067). */
export const AgentAttachments = mappingOf(
  z.strictObject(
    {
      types: listOf(AttachmentType)
        .min(1, 'must name at least one type')
        .max(AttachmentType.options.length, 'must not repeat a type')
        .refine((types) => new Set(types).size === types.length, 'must not repeat a type')
        .default(['image']),
      maxCount: z
        .int({ error: 'must be a whole number' })
        .min(1, `must be 1 to ${MAX_ATTACHMENTS}`)
        .max(MAX_ATTACHMENTS, `must be 1 to ${MAX_ATTACHMENTS}`)
        .default(4),
      /** Maximum size of each attachment in bytes, before base64 encoding. */
      maxBytes: z
        .int({ error: 'must be a whole number' })
        .min(MIN_ATTACHMENT_BYTES, bytesRange)
        .max(MAX_ATTACHMENT_BYTES, bytesRange)
        .default(1024 * 1024),
      uploads: AgentUploads.optional(),
    },
    { error: strictMapping },
  ),
)
export type AgentAttachments = z.infer<typeof AgentAttachments>

/**
 * Returns an upper bound for the bytes that one message's attachments add to a request: base64 data and 1 KiB
 * for each.
 */
export function attachmentBytesOf(rules: AgentAttachments | undefined): number {
  return rules === undefined ? 0 : rules.maxCount * Math.ceil((rules.maxBytes * 4) / 3 + 1024)
}

/** The attachment rules in the format that the widget reads. */
export const AttachmentsView = z
  .strictObject({
    types: z
      .array(AttachmentType)
      .meta({ description: 'Types that both the agent and its default model accept.' }),
    max_count: z.int().meta({ description: 'Maximum number of attachments per message.' }),
    max_bytes: z.int().meta({ description: 'Maximum size of each attachment, in bytes.' }),
    uploads: z
      .strictObject({
        extensions: z
          .array(z.string())
          .meta({ description: 'Extensions of the accepted files, without dots.' }),
        max_bytes: z.int().meta({ description: 'Maximum size of each upload, in bytes.' }),
      })
      .nullable()
      .meta({ description: 'Larger files that visitors may upload; null if none are allowed.' }),
  })
  .nullable()
  .meta({ description: 'Attachments that visitors may add to a message; null if none are allowed.' })

export function renderAttachments(
  rules: AgentAttachments | undefined,
  isAccepted: (type: AttachmentType) => boolean,
  { isStored, maxUploadBytes }: { readonly isStored: boolean; readonly maxUploadBytes: number },
): z.output<typeof AttachmentsView> {
  if (rules === undefined) return null
  const { uploads } = rules
  return {
    types: rules.types.filter(isAccepted),
    max_count: rules.maxCount,
    max_bytes: rules.maxBytes,
    uploads:
      uploads === undefined || !isStored
        ? null
        : {
            extensions: listUploadExtensions(uploads),
            max_bytes: Math.min(uploads.maxBytes, maxUploadBytes),
          },
  }
}

/** The storage settings in the format that the widget reads. */
export const StorageView = z.strictObject({
  stored: z.boolean().meta({ description: "Whether the server stores this agent's conversations." }),
  keep_days: z.int().nullable().meta({
    description:
      'Number of days for which a conversation is stored after its last activity; null if conversations are not stored.',
  }),
  notice: z
    .strictObject({ text: z.string(), url: z.string().nullable() })
    .nullable()
    .meta({ description: 'Notice about storage for visitors; null for the default notice.' }),
  list: z.boolean().meta({ description: 'Whether visitors may list their conversations.' }),
  delete: z.boolean().meta({ description: 'Whether visitors may delete their conversations.' }),
  rate: z.boolean().meta({ description: 'Whether visitors may rate answers.' }),
  resume_seconds: z.int().meta({
    description:
      'The widget continues a conversation only within this number of seconds after its last activity.',
  }),
  handover: z.strictObject({
    button: z.boolean().meta({ description: 'Whether visitors may ask for a person.' }),
    timeout_seconds: z
      .int()
      .meta({ description: "Seconds to wait for a person's answer before the model answers again." }),
  }),
})

export function renderStorage(
  { isAllowed, maxDays }: { readonly isAllowed: boolean; readonly maxDays: number },
  conversations: z.infer<typeof AgentConversations> | undefined,
): z.output<typeof StorageView> {
  if (!isAllowed || conversations === undefined)
    return {
      ...{ stored: false, keep_days: null, notice: null, list: false, delete: false, rate: false },
      resume_seconds: 0,
      handover: { button: false, timeout_seconds: 0 },
    }
  const { keep, notice, visitor, handover = defaultHandover } = conversations
  return {
    stored: true,
    keep_days: Math.min(Math.ceil(toSeconds(keep) / DAY_SECONDS), maxDays),
    notice: notice === undefined ? null : { text: notice.text, url: notice.url ?? null },
    list: visitor.list,
    delete: visitor.delete,
    rate: visitor.rate,
    resume_seconds: toSeconds(visitor.resume),
    handover: { button: handover.button, timeout_seconds: toSeconds(handover.timeout) },
  }
}
