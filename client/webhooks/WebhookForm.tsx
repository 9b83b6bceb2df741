/** Shows the form that creates or changes a webhook. */
import { Alert, Anchor, Button, Checkbox, Code, Group, Stack, Switch, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { AgentSelect } from '../agents/AgentSelect.tsx'
import { api } from '../api.ts'
import { DialogForm } from '../components/Dialog.tsx'
import { toFailure } from '../failure.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { eventTypes, nameEvent } from './events.ts'
import { type EventType, refreshWebhooks, type Webhook, type WebhookInput } from './queries.ts'
import { type NewSecret, SecretNotice } from './SecretNotice.tsx'

const fieldNames = { url: t('webhooks.url'), events: t('webhooks.events'), agent_id: t('common.agent') }

/** The server's errors, by field. */
type FieldErrors = Readonly<Partial<Record<'url' | 'events' | 'agent_id', string>>>

/** Creates a webhook, then shows its secret. */
export function CreateWebhook({ onClose }: { readonly onClose: () => void }) {
  const queries = useQueryClient()
  const [made, setMade] = useState<NewSecret>()
  if (made !== undefined) return <SecretNotice made={made} onClose={onClose} />
  const create = async ({ enabled: _, ...fields }: WebhookInput) => {
    const { secret } = await api.webhooks.create.mutate(fields)
    setMade({ secret })
    await refreshWebhooks(queries)
  }
  return (
    <WebhookFields
      initial={{ url: '', events: [], agent_id: null, include_text: false, enabled: true }}
      action={t('webhooks.create')}
      onSubmit={create}
      onCancel={onClose}
    />
  )
}

interface EditWebhookProps {
  readonly webhook: Webhook
  readonly onClose: () => void
}

export function EditWebhook({ webhook, onClose }: EditWebhookProps) {
  const { id, url, events, agent_id, include_text, state } = webhook
  const queries = useQueryClient()
  const save = async (fields: WebhookInput) => {
    await api.webhooks.update.mutate({ webhook_id: id, ...fields })
    await refreshWebhooks(queries)
    showDone(t('webhooks.saved'))
    onClose()
  }
  return (
    <WebhookFields
      initial={{ url, events, agent_id, include_text, enabled: state === 'enabled' }}
      action={t('common.save')}
      onSubmit={save}
      onCancel={onClose}
      canDisable
    />
  )
}

interface WebhookFieldsProps {
  readonly initial: WebhookInput
  readonly action: string
  readonly onSubmit: (fields: WebhookInput) => Promise<void>
  readonly onCancel: () => void
  /** Whether the form contains the switch that stops deliveries. */
  readonly canDisable?: boolean
}

function WebhookFields({ initial, action, onSubmit, onCancel, canDisable = false }: WebhookFieldsProps) {
  const [fields, setFields] = useState(initial)
  const [errors, setErrors] = useState<FieldErrors>({})
  const urlInput = useRef<HTMLInputElement>(null)
  const change = (changes: Partial<WebhookInput>) => {
    setFields({ ...fields, ...changes })
    setErrors({})
  }
  const submit = async () => {
    try {
      await onSubmit({ ...fields, url: fields.url.trim() })
    } catch (thrown) {
      const { param, message } = toFailure(thrown)
      if (param !== 'url' && param !== 'events' && param !== 'agent_id') throw thrown
      setErrors({ [param]: message.replace(`${param}:`, fieldNames[param]) })
      if (param === 'url') urlInput.current?.focus()
    }
  }
  const isReady = fields.url.trim() !== '' && fields.events.length > 0
  return (
    <DialogForm onSubmit={submit} onCancel={onCancel} action={action} isReady={isReady}>
      <TextInput
        ref={urlInput}
        label={t('webhooks.url')}
        description={t('webhooks.urlHelp')}
        placeholder="https://example.org/hook"
        type="url"
        required
        data-autofocus
        maxLength={2_000}
        autoComplete="off"
        spellCheck={false}
        error={errors.url}
        value={fields.url}
        onChange={({ currentTarget: { value } }) => change({ url: value })}
      />
      <EventsField
        value={fields.events}
        error={errors.events}
        onChange={(events) => change({ events: [...events] })}
      />
      <AgentSelect
        label={t('common.agent')}
        description={t('webhooks.agentHelp')}
        error={errors.agent_id}
        value={fields.agent_id ?? undefined}
        onChange={(id) => change({ agent_id: id ?? null })}
      />
      <Checkbox
        label={t('webhooks.includeText')}
        description={t('webhooks.includeTextHelp')}
        checked={fields.include_text ?? false}
        onChange={({ currentTarget: { checked } }) => change({ include_text: checked })}
      />
      {fields.include_text === true ? (
        <Alert color="yellow" role="status" icon={<Icon name="warning" />}>
          {t('webhooks.includeTextWarning')}
        </Alert>
      ) : null}
      {canDisable ? (
        <Switch
          label={t('webhooks.deliver')}
          description={t('webhooks.deliverHelp')}
          checked={fields.enabled ?? true}
          onChange={({ currentTarget: { checked } }) => change({ enabled: checked })}
        />
      ) : null}
    </DialogForm>
  )
}

interface EventsFieldProps {
  readonly value: readonly EventType[]
  readonly error: string | undefined
  readonly onChange: (events: readonly EventType[]) => void
}

function EventsField({ value, error, onChange }: EventsFieldProps) {
  const hasAll = value.length === eventTypes.length
  return (
    <Checkbox.Group
      label={t('webhooks.events')}
      description={t('webhooks.eventsHelp')}
      withAsterisk
      error={error}
      value={[...value]}
      onChange={(chosen) => onChange(eventTypes.filter((type) => chosen.includes(type)))}
    >
      <Stack gap="sm" mt="xs" className="webhook-events">
        <Group gap="xs">
          <Button variant="default" size="xs" onClick={() => onChange(hasAll ? [] : eventTypes)}>
            {hasAll ? t('common.clearSelection') : t('webhooks.selectAll')}
          </Button>
          <Anchor href="/docs/webhooks" target="_blank" rel="noreferrer" size="xs">
            {t('shell.documentation')}
          </Anchor>
        </Group>
        {eventTypes.map((type) => (
          <Checkbox
            key={type}
            value={type}
            label={nameEvent(type)}
            description={
              <>
                {t(`webhooks.about.${type}`)} <Code fz="inherit">{type}</Code>
              </>
            }
          />
        ))}
      </Stack>
    </Checkbox.Group>
  )
}
