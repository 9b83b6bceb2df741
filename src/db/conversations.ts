/** Gives the conversations module its database and the types of its tables. */
export {
  type ConversationDatabase,
  type ConversationStorage,
  createConversationStorage,
} from './conversations/open.ts'
export type {
  ConversationDb,
  ConversationTable,
  ItemTable,
  TurnStatus,
  TurnTable,
} from './conversations/tables.ts'
