/** Defines the widget's English strings, and the type of their translations. */

export const en = {
  /** Texts with a count, by plural category. */
  newMessages: { one: '{count} new message', other: '{count} new messages' },

  defaultTitle: 'Chat',
  placeholder: 'Type a message...',
  send: 'Send',
  stop: 'Stop',
  messageLabel: 'Your message',
  conversation: 'Conversation',
  youSaid: 'You said',
  assistantSaid: 'The assistant said',
  thinking: 'Writing an answer…',
  answerReady: 'The answer is complete.',
  stopped: 'You stopped this answer.',
  jumpToLatest: 'Jump to latest',
  startersLabel: 'Suggestions',

  openChat: 'Open chat',
  closeChat: 'Close chat',
  expand: 'Expand',
  shrink: 'Reduce',
  menu: 'More actions',
  newConversation: 'New conversation',
  shareConversation: 'Share conversation',
  newConversationQuestion: 'Start a new conversation?',
  newConversationLoss: 'The messages of this conversation will be deleted from this device.',
  startNew: 'Start new',
  cancel: 'Cancel',

  earlierConversations: 'Earlier conversations',
  noEarlierConversations: 'No earlier conversations',
  loading: 'Loading…',
  showMore: 'Show more',
  untitled: 'Untitled conversation',
  unread: 'Unread',
  backToChat: 'Back to chat',
  deleteConversation: 'Delete conversation',
  deleteNamed: 'Delete “{title}”',
  deleteQuestion: 'Delete this conversation?',
  deleteLoss: 'Its messages will be deleted permanently.',
  delete: 'Delete',

  /** Why the model did not finish an answer. */
  incomplete: {
    interrupted: 'This answer was interrupted.',
    max_output_tokens: 'This answer has reached its maximum length.',
    content_filter: 'A content filter stopped this answer.',
  },
  continueAnswer: 'Continue',

  noticeButton: 'Privacy notice',
  /** `{days}` is a duration such as "30 days". */
  notice: 'This conversation is stored for {days}. The team behind this chat can read it.',
  noticeLink: 'Privacy information',

  copy: 'Copy',
  copied: 'Copied',
  copyCode: 'Copy code',
  copyMessage: 'Copy answer',
  insert: 'Insert into page',
  share: 'Share',
  shared: 'Shared',
  retry: 'Try again',
  regenerate: 'Answer again',
  picture: 'Image',
  enlarge: 'Enlarge: {name}',
  closePicture: 'Close image',
  code: 'Code',
  table: 'Table',

  edit: 'Edit message',
  editLabel: 'Edit your message',
  editLoss: 'Sending it again removes the messages below.',
  remove: 'Remove message',
  removeQuestion: 'Remove this message?',
  removeLoss: 'Its answer will be removed too.',
  removeLossStored: "The conversation no longer contains it or its answer. The operator's record keeps both.",
  removeYes: 'Remove',
  earlierVersion: 'Previous answer',
  laterVersion: 'Next answer',
  version: 'Answer {number} of {count}',
  copyConversation: 'Copy conversation',
  disclaimer: 'AI assistant. It can make mistakes.',
  privacyLink: 'Privacy',
  dictate: 'Dictate',
  stopDictation: 'Stop dictating',
  dictationFailed: 'The microphone cannot be used. Check the permission in your browser.',
  readAloud: 'Read aloud',
  stopReading: 'Stop reading',

  attach: 'Attach files',
  attachments: 'Attachments',
  removeAttachment: 'Remove {name}',
  attachmentType: 'This assistant cannot read {name}.',
  attachmentSize: '{name} is too large (limit: {limit}).',
  attachmentCount: 'A message can have at most {count} attachments.',
  uploads: 'Uploads',
  uploading: 'Uploading {name}',
  pauseUpload: 'Pause the upload of {name}',
  resumeUpload: 'Continue the upload of {name}',
  retryUpload: 'Upload {name} again',
  uploadPaused: 'Paused',
  uploadInterrupted: 'Connection lost',
  uploadFailed: 'Upload failed. Try again.',
  uploadLimited: 'Too many uploads. Try again later.',
  tooLongInput: 'The message is too long: {count} characters (limit: {limit}).',
  charactersUsed: '{count} of {limit} characters',

  /** People who answer instead of the model; `{name}` is the person's name. */
  people: {
    ask: 'Talk to a person',
    askHint: '(after your first message)',
    status: 'Who answers',
    waiting: 'Waiting for a person.',
    waitingHint: 'You can keep writing.',
    /** `{time}` is a duration such as "10 minutes". */
    waitingNext: 'Without an answer within {time}, the assistant continues.',
    talking: 'You are talking to {name}',
    talkingUnnamed: 'You are talking to a person',
    asked: 'A person has been asked to answer.',
    joined: 'You are now talking to {name}.',
    joinedUnnamed: 'You are now talking to a person.',
    returned: 'The assistant answers again.',
    said: '{name} said',
    saidUnnamed: 'The person said',
    unnamed: 'Team',
    delayed: 'Not sent yet. Trying again…',
  },

  rating: {
    good: 'Good answer',
    bad: 'Bad answer',
    form: 'Feedback on this answer',
    thanks: 'Thank you!',
    question: 'What was wrong?',
    comment: 'Comment (optional)',
    remove: 'Remove rating',
    skip: 'Close',
    reasons: {
      incorrect: 'Incorrect',
      incomplete: 'Incomplete',
      off_topic: 'Off topic',
      unsafe: 'Unsafe',
      too_slow: 'Too slow',
      other: 'Other',
    },
  },

  tool: {
    quoted: '“{name}”',
    running: 'Using {name}…',
    done: 'Used {name}',
    failed: '{name} failed',
    denied: '{name} was not allowed',
    cancelled: '{name} was not used',
    unknown: 'Outcome of {name} unknown',
    asking: '{name} needs your permission',
    arguments: 'Input',
    result: 'Result',
    question: 'The assistant wants to use {name} on this page.',
    allowOnce: 'Allow once',
    allowAlways: 'Always in this conversation',
    exact: 'Exact data',
    yes: 'Yes',
    no: 'No',
    nothing: 'None',
    deny: 'Don’t allow',
  },

  /** Error messages by failure code; `{wait}` is a time such as "12 seconds". */
  failures: {
    missing_api_key: 'This chat is not set up yet: the page does not provide an agent key.',
    invalid_api_key: 'This chat is unavailable because its key is invalid.',
    agent_mismatch: 'This chat is not set up correctly: its key belongs to another agent.',
    endpoint_not_allowed: 'This chat cannot connect to the server that the page specifies.',
    provider_key_not_allowed:
      'This server does not allow provider keys in pages. The chat is disabled to protect the key.',
    context_too_large: 'The page adds too much information to your message. The message was not sent.',
    rate_limited: 'Too many messages right now. Please wait a moment.',
    rate_limited_wait: 'Too many messages right now. Try again in {wait}.',
    quota_spent: 'This chat has reached its usage limit. Please try again later.',
    offline: 'You are offline. You can continue as soon as the connection is back.',
    unreachable: 'The server cannot be reached. Please check your connection.',
    too_long: 'This conversation is too long for the assistant. Start a new one or send a shorter message.',
    refused: 'This message could not be processed. Change it and send it again.',
    busy: 'The assistant is not available right now. Please try again in a moment.',
    interrupted: 'The connection was lost before the answer was complete.',
    reloaded: 'The answer was interrupted when the page was reloaded.',
    identity_invalid: 'This chat could not confirm who you are. Sign in again.',
    identity_expired: 'Your sign-in has expired. Sign in again.',
    empty: 'The assistant returned no answer.',
    server: 'Something went wrong on the server. Please try again.',
  },
  offlineNotice: 'You are offline.',
} as const

export type Plurals = { readonly other: string } & { readonly [Category in Intl.LDMLPluralRule]?: string }

type Words<T> = {
  readonly [Name in keyof T]: T[Name] extends string
    ? string
    : T[Name] extends { readonly one: string; readonly other: string }
      ? Plurals
      : Words<T[Name]>
}

/** All strings that the frame shows. */
export type Strings = Words<typeof en>
