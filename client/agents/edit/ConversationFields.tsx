/** Shows the fields that determine which conversations an agent stores, and for how long. */

import { Alert, SimpleGrid, Stack, Text } from '@mantine/core'
import { useMe } from '../../shell/use-me.ts'
import { t } from '../../strings/language.ts'
import { ChoiceField, NumberField, TextField, useField } from './fields.tsx'
import { HandoverFields } from './HandoverFields.tsx'
import { PermissionSwitch, PresenceSwitch } from './switches.tsx'

const DEFAULT_KEEP = '30d'

export function ConversationFields() {
  const { value } = useField(['conversations'])
  const { is_allowed: isAllowed } = useMe().conversations
  const isOn = value !== undefined && value !== null
  return (
    <Stack gap="sm">
      <PresenceSwitch
        path={['conversations']}
        label={t('conversations.storeConversations')}
        about={t('editor.storeAbout')}
        initial={{ keep: DEFAULT_KEEP }}
      />
      {isOn && !isAllowed ? (
        <Alert color="yellow">
          <Text size="sm">{t('editor.storeForbidden')}</Text>
        </Alert>
      ) : null}
      {isOn ? <StoredFields /> : null}
    </Stack>
  )
}

const disconnects = [
  { value: 'cancel', label: t('editor.stopAnswer') },
  { value: 'continue', label: t('editor.finishAnswer') },
]

const toolData = [
  { value: 'full', label: t('editor.storeFull') },
  { value: 'names', label: t('editor.storeNames') },
]

function StoredFields() {
  const { max_days: maxDays } = useMe().conversations
  return (
    <>
      <TextField
        path={['conversations', 'keep']}
        label={t('editor.deleteAfter')}
        about={t('editor.deleteAfterAbout', { days: maxDays })}
        isRequired
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
        <ChoiceField
          path={['conversations', 'onDisconnect']}
          label={t('editor.ifDisconnects')}
          about={t('editor.ifDisconnectsAbout')}
          choices={disconnects}
        />
        <ChoiceField
          path={['conversations', 'toolData']}
          label={t('editor.toolData')}
          about={t('editor.toolDataAbout')}
          choices={toolData}
        />
        <NumberField
          path={['conversations', 'history', 'turns']}
          label={t('editor.historyTurns')}
          about={t('editor.historyTurnsAbout')}
          placeholder="40"
          min={1}
          max={200}
        />
        <NumberField
          path={['conversations', 'history', 'tokens']}
          label={t('editor.historyTokens')}
          about={t('editor.historyTokensAbout')}
          placeholder="16000"
          min={500}
          max={1_000_000}
          step={500}
        />
        <TextField
          path={['conversations', 'visitor', 'resume']}
          label={t('editor.resume')}
          about={t('editor.resumeAbout')}
          placeholder="24h"
        />
      </SimpleGrid>
      <PermissionSwitch path={['conversations', 'visitor', 'list']} label={t('editor.rightList')} />
      <PermissionSwitch path={['conversations', 'visitor', 'delete']} label={t('editor.rightDelete')} />
      <PermissionSwitch path={['conversations', 'visitor', 'rate']} label={t('editor.rightRate')} />
      <TextField
        path={['conversations', 'notice', 'text']}
        label={t('editor.notice')}
        about={t('editor.noticeAbout')}
      />
      <TextField
        path={['conversations', 'notice', 'url']}
        label={t('editor.privacyPage')}
        about={t('editor.privacyPageAbout')}
        placeholder="https://www.example.org/privacy"
      />
      <HandoverFields />
    </>
  )
}
