/** Shows the form that sets a model's price, as fields or as JSON. */
import { Anchor, NativeSelect, SimpleGrid, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Inputs } from '../api.ts'
import { DialogForm } from '../components/Dialog.tsx'
import { toFailure } from '../failure.ts'
import { providersQuery } from '../providers/queries.ts'
import { t } from '../strings/language.ts'
import {
  type AmountField,
  feeFields,
  fieldOf,
  isAmount,
  noFields,
  type Price,
  type PriceEntry,
  type PriceFields,
  parsePrices,
  rateFields,
  toEntry,
  toFields,
} from './fields.ts'

interface PriceFormProps {
  /** The model whose price is set; undefined if the user chooses it. */
  readonly price: Price | undefined
  readonly onCancel: () => void
  readonly onSaved: () => Promise<void>
}

type Invalid = ReturnType<typeof fieldOf> | 'json'

export function PriceForm({ price, onCancel, onSaved }: PriceFormProps) {
  const [model, setModel] = useState({ provider: price?.provider ?? '', model: price?.model ?? '' })
  const draft = useDraft(price)
  const [invalid, setInvalid] = useState<{ readonly field: Invalid; readonly message: string }>()
  const save = async () => {
    const prices = draft.read()
    if (prices === undefined) return setInvalid({ field: 'json', message: t('prices.notJson') })
    const body = Array.isArray(prices) ? { entries: prices } : prices
    try {
      await api.prices.set.mutate({
        ...body,
        provider: model.provider,
        model: model.model.trim(),
      } as Inputs['prices']['set'])
    } catch (error) {
      const { param, message } = toFailure(error)
      const field = draft.json === undefined ? fieldOf(param) : 'json'
      setInvalid({ field, message })
      throw error
    }
    await onSaved()
  }
  const errorOf = (field: Invalid) => (invalid?.field === field ? invalid?.message : undefined)
  const change = (set: () => void) => {
    set()
    setInvalid(undefined)
  }
  const isReady = model.provider !== '' && model.model.trim() !== '' && draft.isReady
  return (
    <DialogForm onSubmit={save} onCancel={onCancel} action={t('common.save')} isReady={isReady}>
      {price === undefined ? (
        <ModelFields model={model} errorOf={errorOf} onChange={(next) => change(() => setModel(next))} />
      ) : null}
      {draft.json === undefined ? (
        <AmountFields
          fields={draft.fields}
          errorOf={errorOf}
          onChange={(next) => change(() => draft.setFields(next))}
        />
      ) : (
        <Textarea
          label={t('prices.json')}
          description={t('prices.jsonHelp')}
          className="price-json"
          autosize
          minRows={8}
          maxRows={20}
          spellCheck={false}
          error={errorOf('json')}
          value={draft.json}
          onChange={({ currentTarget: { value } }) => change(() => draft.setJson(value))}
        />
      )}
      {draft.canSwitch ? (
        <Text size="sm">
          <Anchor component="button" type="button" inherit onClick={() => change(draft.switchView)}>
            {draft.json === undefined ? t('prices.asJson') : t('prices.asForm')}
          </Anchor>
        </Text>
      ) : null}
    </DialogForm>
  )
}

/** Starts with the stored price, or with the one that it would replace. */
function useDraft(price: Price | undefined) {
  const [fields, setFields] = useState<PriceFields>(() => startFields(price) ?? noFields)
  const [json, setJson] = useState<string | undefined>(() =>
    startFields(price) === undefined ? renderJson(entriesOf(price)) : undefined,
  )
  const parsed = json === undefined ? undefined : parsePrices(json)
  const parsedFields =
    parsed === undefined || Array.isArray(parsed) ? undefined : toFields(parsed as PriceEntry)
  const { amounts } = fields
  const isValid = Object.values(amounts).every(isAmount)
  return {
    ...{ fields, setFields, json, setJson },
    isReady: json === undefined ? isValid && (amounts.input ?? '').trim() !== '' : json.trim() !== '',
    read: () => (json === undefined ? toEntry(fields) : parsed),
    /** The form cannot show prices with other fields. */
    canSwitch: json === undefined ? isValid : parsedFields !== undefined,
    switchView: () => {
      if (json === undefined) return setJson(renderJson([toEntry(fields)]))
      if (parsedFields !== undefined) setFields(parsedFields)
      setJson(undefined)
    },
  }
}

function entriesOf(price: Price | undefined): readonly PriceEntry[] {
  return price?.override?.entries ?? (price?.entry == null ? [] : [price.entry])
}

function startFields(price: Price | undefined): PriceFields | undefined {
  const [entry, ...others] = entriesOf(price)
  if (entry === undefined) return noFields
  return others.length === 0 ? toFields(entry) : undefined
}

function renderJson(entries: readonly PriceEntry[]): string {
  return JSON.stringify(entries.length === 1 ? entries[0] : entries, null, 2)
}

interface ModelFieldsProps {
  readonly model: { readonly provider: string; readonly model: string }
  readonly errorOf: (field: Invalid) => string | undefined
  readonly onChange: (model: ModelFieldsProps['model']) => void
}

function ModelFields({ model, errorOf, onChange }: ModelFieldsProps) {
  const { data } = useQuery(providersQuery)
  const names = data?.data.map(({ name }) => name) ?? []
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      <NativeSelect
        label={t('prices.provider')}
        required
        data={[{ value: '', label: t('prices.choose') }, ...names]}
        error={errorOf('provider')}
        value={model.provider}
        onChange={({ currentTarget: { value } }) => onChange({ ...model, provider: value })}
      />
      <TextInput
        label={t('prices.model')}
        required
        maxLength={300}
        autoComplete="off"
        spellCheck={false}
        error={errorOf('model')}
        value={model.model}
        onChange={({ currentTarget: { value } }) => onChange({ ...model, model: value })}
      />
    </SimpleGrid>
  )
}

interface AmountFieldsProps {
  readonly fields: PriceFields
  readonly errorOf: (field: Invalid) => string | undefined
  readonly onChange: (fields: PriceFields) => void
}

function AmountFields({ fields, errorOf, onChange }: AmountFieldsProps) {
  const { amounts, since } = fields
  const show = (name: AmountField) => (
    <TextInput
      key={name}
      label={t(`prices.${name}`)}
      description={help[name] === undefined ? undefined : t(help[name])}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      required={name === 'input'}
      data-autofocus={name === 'input' || undefined}
      inputMode="decimal"
      autoComplete="off"
      leftSection="$"
      error={isAmount(amounts[name]) ? errorOf(name) : t('prices.amountRule')}
      value={amounts[name] ?? ''}
      onChange={({ currentTarget: { value } }) =>
        onChange({ ...fields, amounts: { ...amounts, [name]: value } })
      }
    />
  )
  return (
    <>
      <fieldset className="price-fields">
        <Text component="legend" size="sm" fw={500}>
          {t('prices.perMillion')}
        </Text>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>{rateFields.map(show)}</SimpleGrid>
      </fieldset>
      <fieldset className="price-fields">
        <Text component="legend" size="sm" fw={500}>
          {t('prices.fees')}
        </Text>
        <SimpleGrid cols={{ base: 1, xs: 3 }}>{feeFields.map(show)}</SimpleGrid>
      </fieldset>
      <TextInput
        label={t('prices.since')}
        description={t('prices.sinceHelp')}
        placeholder="2026-11-01"
        autoComplete="off"
        maxLength={24}
        error={errorOf('since')}
        value={since}
        onChange={({ currentTarget: { value } }) => onChange({ ...fields, since: value })}
      />
    </>
  )
}

const help = {
  output: 'prices.outputHelp',
  cached_input: 'prices.sameAsInput',
  cache_write: 'prices.sameAsInput',
} as const satisfies Partial<Record<AmountField, string>> as Readonly<
  Partial<Record<AmountField, 'prices.outputHelp' | 'prices.sameAsInput'>>
>
