/** The frame's words in English: every other language has the same ones. */

export const en = {
  /** Counts of things, by the plural categories of the language. */
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
  scrollDown: 'New messages',
  startersLabel: 'Suggestions',

  openChat: 'Open chat',
  closeChat: 'Close chat',
  menu: 'More actions',
  newConversation: 'New conversation',
  shareConversation: 'Share conversation',
  newConversationQuestion: 'Start a new conversation?',
  newConversationLoss: 'The messages of this one will be deleted from this device.',
  startNew: 'Start new',
  cancel: 'Cancel',

  copy: 'Copy',
  copied: 'Copied',
  copyCode: 'Copy code',
  copyMessage: 'Copy answer',
  insert: 'Insert into page',
  share: 'Share',
  shared: 'Shared',
  retry: 'Try again',
  regenerate: 'Answer again',
  picture: 'Picture',
  code: 'Code',
  table: 'Table',

  tooLongInput: 'The message is too long: {count} of at most {limit} characters.',
  charactersUsed: '{count} of {limit} characters',

  tool: {
    quoted: '“{name}”',
    running: 'Using {name}…',
    done: 'Used {name}',
    failed: '{name} failed',
    denied: '{name} was not allowed',
    asking: '{name} needs your permission',
    arguments: 'Sent to it',
    result: 'What came back',
    question: 'The assistant wants to use {name} on this page with exactly this:',
    approve: 'Allow',
    deny: 'Don’t allow',
  },

  /** What is told when something goes wrong; `{wait}` is a time such as "12 seconds". */
  failures: {
    missing_api_key: 'This chat is not set up yet: the page gives no agent key.',
    invalid_api_key: 'This chat cannot be used: its key was refused.',
    agent_mismatch: 'This chat is not set up correctly: its key belongs to another agent.',
    endpoint_not_allowed: 'This chat may not speak to the server that the page names.',
    provider_key_not_allowed:
      'This server does not allow a provider key in a page. The chat stays off so that the key is not used.',
    context_too_large: 'The page adds more information than can be sent. Your message was not sent.',
    rate_limited: 'There are too many messages just now. Please wait a moment.',
    rate_limited_wait: 'There are too many messages just now. Try again in {wait}.',
    quota_spent: 'The allowance for this chat is used up for now. Please try again later.',
    offline: 'You are offline. As soon as the connection is back, you can go on.',
    unreachable: 'The server cannot be reached. Please check your connection.',
    too_long: 'This conversation is too long for the assistant. Start a new one or send a shorter message.',
    refused: 'This message could not be processed.',
    busy: 'The assistant is not available just now. Please try again in a moment.',
    interrupted: 'The connection broke off in the middle of the answer.',
    reloaded: 'The answer broke off when the page was reloaded.',
    empty: 'No answer came back.',
    server: 'Something went wrong on the server.',
  },
  offlineNotice: 'You are offline.',
} as const

export type Plurals = { readonly other: string } & { readonly [Category in Intl.LDMLPluralRule]?: string }

type Words<T> = {
  readonly [Name in keyof T]: T[Name] extends string
    ? string
    : T[Name] extends { readonly other: string }
      ? Plurals
      : Words<T[Name]>
}

/** Every word the frame shows. */
export type Strings = Words<typeof en>
