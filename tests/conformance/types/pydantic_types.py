"""Prints the JSON Schemas of pydantic's types as one object."""
import datetime
import decimal
import enum
import json
import typing
import uuid

from pydantic import BaseModel, Field, conint, conlist, constr


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    sku: constr(regex=r"^[A-Z]{2}-\d{3}$")
    count: conint(ge=1, le=99) = 1
    price: decimal.Decimal = Field(..., gt=0)


class Order(BaseModel):
    id: uuid.UUID
    at: datetime.datetime
    items: conlist(Item, min_items=1, max_items=3)
    colour: typing.Optional[Colour] = None
    notes: typing.Dict[str, str] = {}

    class Config:
        extra = "forbid"


class Node(BaseModel):
    name: str
    parent: typing.Optional["Node"] = None


class Cat(BaseModel):
    kind: typing.Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: typing.Literal["dog"]
    name: str


class Pet(BaseModel):
    pet: typing.Union[Cat, Dog] = Field(..., discriminator="kind")


class Mixed(BaseModel):
    pair: typing.Tuple[int, str]
    tags: typing.Set[str]
    score: typing.Union[int, typing.List[float]]
    day: datetime.date
    by_id: typing.Dict[constr(regex=r"^id-\d+$"), int]


Node.update_forward_refs()
print(json.dumps({model.__name__: model.schema() for model in (Item, Order, Node, Pet, Mixed, Cat)}))
